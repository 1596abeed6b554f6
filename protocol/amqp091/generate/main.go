// Program generate writes the Go code of the methods from methods.txt. It is run by go generate in the package's folder.
package main

import (
	"fmt"
	"os"
)

func main() {
	text, err := os.ReadFile("methods.txt")
	if err == nil {
		var files map[string][]byte
		if files, err = generate(string(text)); err == nil {
			for name, content := range files {
				if err = os.WriteFile(name, content, 0o644); err != nil {
					break
				}
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
