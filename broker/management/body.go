package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// body is a request's JSON object. Tools send booleans also as texts.
type body map[string]any

// body reads the request's; nothing at all is an empty object.
func (c *call) body() (body, error) {
	text, err := io.ReadAll(c.r.Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, &failure{http.StatusRequestEntityTooLarge, refusal{"bad_request", "the body is larger than 1 MiB"}}
		}
		return nil, badRequest("the body could not be read")
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return body{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var b body
	if err := d.Decode(&b); err != nil || b == nil || d.More() {
		return nil, badRequest("not_json")
	}
	return b, nil
}

// flag returns a boolean, false when it is not there.
func (b body) flag(name string) (bool, error) {
	switch v := b[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		switch v {
		case "true":
			return true, nil
		case "false", "":
			return false, nil
		}
	}
	return false, badRequest("%s is true or false, not %.60v", name, b[name])
}

// text returns a string, or what stands for it when it is not there.
func (b body) text(name, missing string) (string, error) {
	switch v := b[name].(type) {
	case nil:
		return missing, nil
	case string:
		return v, nil
	}
	return "", badRequest("%s is a string, not %.60v", name, b[name])
}

// arguments returns the object of that name as a field table's bytes.
func (b body) arguments() ([]byte, error) {
	switch v := b["arguments"].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		table, err := amqp091.AppendMap(nil, toTable(v).(map[string]any))
		if err != nil {
			return nil, badRequest("arguments: %v", err)
		}
		return table, nil
	case []any:
		if len(v) == 0 { // some languages write an empty object so
			return nil, nil
		}
	}
	return nil, badRequest("arguments is an object, not %.60v", b["arguments"])
}

// toTable makes AMQP's values of JSON's: numbers without a fraction become 64-bit integers.
func toTable(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for k := range v {
			v[k] = toTable(v[k])
		}
	case []any:
		for i := range v {
			v[i] = toTable(v[i])
		}
	}
	return v
}

// fromTable makes a JSON object of a field table's bytes.
func fromTable(table []byte) object {
	m, err := amqp091.Table(table).Map()
	if err != nil { // it was checked when it came
		return object{}
	}
	return toJSON(m).(object)
}

func toJSON(v any) any {
	switch v := v.(type) {
	case amqp091.Map:
		o := make(object, len(v))
		for k := range v {
			o[k] = toJSON(v[k])
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = toJSON(v[i])
		}
		return list
	case []byte:
		return string(v)
	case time.Time:
		return v.Unix()
	case float32:
		return toJSON(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has neither
			return nil
		}
	case amqp091.Decimal:
		f := float64(v.Value)
		for range min(v.Scale, 20) {
			f /= 10
		}
		return f
	}
	return v
}
