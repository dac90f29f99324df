// Corefiles writes what the migration library of CoreDNS makes of Corefiles.
//
// It reads vectors from standard input, a JSON value a line, and writes them with their outcome. An outcome that is there already does not
// count. A vector without a Corefile asks for the releases that the library knows, oldest first.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/coredns/corefile-migration/migration"
)

type vector struct {
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Corefile string   `json:"corefile,omitempty"`
	After    *string  `json:"after,omitempty"`
	Error    string   `json:"error,omitempty"`
	Releases []string `json:"releases,omitempty"`
}

func (v *vector) ask() {
	v.After, v.Error, v.Releases = nil, "", nil
	if v.Corefile == "" {
		v.Releases = migration.ValidVersions()
		return
	}
	// As Cluster API asks: what is deprecated stays until it does not work any more.
	after, err := migration.Migrate(v.From, v.To, v.Corefile, false)
	if err != nil {
		v.Error = err.Error()
		return
	}
	v.After = &after
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		var v vector
		err := in.Decode(&v)
		if err == io.EOF {
			return
		}
		if err == nil {
			v.ask()
			err = out.Encode(v)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
