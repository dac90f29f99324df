module windlass.test/tools/ignition-validate

go 1.26.0

tool github.com/flatcar/ignition/validate

require (
	github.com/ajeddeloh/go-json v0.0.0-20160803184958-73d058cf8437 // indirect
	github.com/coreos/go-semver v0.1.0 // indirect
	github.com/coreos/go-systemd v0.0.0-20181031085051-9002847aa142 // indirect
	github.com/flatcar/ignition v0.36.2 // indirect
	github.com/vincent-petithory/dataurl v1.0.0 // indirect
	go4.org v0.0.0-20160314031811-03efcb870d84 // indirect
)
