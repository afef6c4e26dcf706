// A host in Go, tested with a recorded extension: go test host_test.go
package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

const greet = `{"jsonrpc":"2.0","id":"go-1","method":"execute","params":{"operation":"greet",` +
	`"args":{"name":"Ada"},"context":{"workdir":".","phase":"setup"}}}`

func TestAGreetingIsUnderstood(t *testing.T) {
	child := exec.Command("ext-recorder", "replay", "greeting.yaml")
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, greet)
	var answer struct {
		ID     string
		Result struct{ Message string }
	}
	lines := bufio.NewScanner(out)
	for answer.ID == "" && lines.Scan() { // a log has no id
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Error(err)
		}
	}
	if answer.ID != "go-1" || answer.Result.Message != "Hello, Ada!" {
		t.Errorf("found %s", lines.Text())
	}
	in.Close()
	if err := child.Wait(); err != nil { // exit status 3: something else was asked than is recorded
		t.Error(err)
	}
}
