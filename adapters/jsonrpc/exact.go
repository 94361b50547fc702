package jsonrpc

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Decoder decodes like encoding/json, but matches member names exactly.
// encoding/json lets "CWD", or "param\u017f" with a long s, override a member
// that was spelled right and perhaps checked by somebody else before. The
// zero Decoder is ready; it remembers the fields of the types it met.
type Decoder struct {
	fields sync.Map // reflect.Type -> map[string]reflect.Type
}

// Unmarshal decodes with a new Decoder. Code that decodes often keeps one.
func Unmarshal(data []byte, v any) error { return new(Decoder).Unmarshal(data, v) }

// Unmarshal decodes data into the value v points to. Types with an
// UnmarshalJSON of their own, json.RawMessage among them, decode as they like.
func (d *Decoder) Unmarshal(data []byte, v any) error {
	e := exact{d: d, in: data, out: data}
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer {
		e.walk(0, len(data), t.Elem())
	}
	return json.Unmarshal(e.out, v)
}

// exact hides the members whose names match only by folding. It overwrites
// such a name with one of equal length that is nobody's, in a copy made when
// the first one is met: so nearly always nothing is copied at all.
type exact struct {
	d       *Decoder
	in, out []byte
	copied  bool
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// walk treats in[start:end], one value that will be decoded into a t.
func (e *exact) walk(start, end int, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler) {
		return
	}
	raw := e.in[start:end]
	switch t.Kind() {
	case reflect.Struct:
		fields := e.d.fieldsOf(t)
		for m := range members(raw) {
			name := stringValue(raw[m.name:m.nameEnd])
			if ft, ok := fields[name]; ok {
				e.walk(start+m.value, start+m.end, ft)
			} else if folds(name, fields) {
				e.hide(start+m.name+1, start+m.nameEnd-1)
			}
		}
	case reflect.Map:
		for m := range members(raw) {
			e.walk(start+m.value, start+m.end, t.Elem())
		}
	case reflect.Slice, reflect.Array:
		if !holdsStruct(t.Elem()) {
			return
		}
		for from, to := range elements(raw) {
			e.walk(start+from, start+to, t.Elem())
		}
	}
}

// holdsStruct says whether elements of type t are worth a look.
func holdsStruct(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array, reflect.Pointer:
		return true
	}
	return false
}

// folds reports whether encoding/json would take name for one of fields.
func folds(name string, fields map[string]reflect.Type) bool {
	for f := range fields {
		if strings.EqualFold(f, name) {
			return true
		}
	}
	return false
}

func (e *exact) hide(start, end int) {
	if !e.copied {
		e.out = append([]byte(nil), e.in...)
		e.copied = true
	}
	for i := start; i < end; i++ {
		e.out[i] = '~'
	}
}

// fieldsOf returns the members a struct type takes, by name.
func (d *Decoder) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if f, ok := d.fields.Load(t); ok {
		return f.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	collectFields(t, fields, map[reflect.Type]bool{})
	d.fields.Store(t, fields)
	return fields
}

// collectFields adds the fields of t and of the structs embedded in it.
func collectFields(t reflect.Type, fields map[string]reflect.Type, met map[reflect.Type]bool) {
	if met[t] {
		return
	}
	met[t] = true
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && ft.Kind() == reflect.Struct:
			collectFields(ft, fields, met)
		case !f.IsExported():
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
}
