module windlass.test/tools/corefiles

go 1.26.0

require github.com/coredns/corefile-migration v1.0.34

require github.com/coredns/caddy v1.1.1 // indirect
