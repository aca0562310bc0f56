package wire

import (
	"bytes"
	"encoding/json"
)

// Encode gives a message as JSON. Unlike json.Marshal it leaves <, > and & in an app's values as they are.
func Encode(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
