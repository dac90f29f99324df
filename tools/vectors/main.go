// Vectors writes what Kubernetes' own libraries make of the test vectors of our schemas, patches and applies.
//
// It reads vectors of one sort from standard input, a JSON value a line, and writes them with their outcome: `vectors schemas`,
// `vectors patches`, `vectors sequences`. An outcome that is there already does not count.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	sorts := map[string]func([]byte) (any, error){
		"schemas":   schemaVector,
		"patches":   patchVector,
		"sequences": sequenceVector,
	}
	if len(os.Args) != 2 || sorts[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: vectors schemas|patches|sequences"))
	}
	out := bufio.NewWriter(os.Stdout)
	in := bufio.NewReader(os.Stdin)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			result, failed := sorts[os.Args[1]](line)
			if failed != nil {
				fail(fmt.Errorf("line %d: %w", number, failed))
			}
			text, failed := plain(result)
			if failed != nil {
				fail(fmt.Errorf("line %d: %w", number, failed))
			}
			out.Write(text)
		}
		if err != nil {
			break
		}
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}

// plain encodes a value in a line, with the characters of HTML as they are.
func plain(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return text.Bytes(), err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
