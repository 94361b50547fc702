package porttest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// The members of the sealed unions that records are made of. A test compares
// them with the source of core/domain, so that a new member cannot be left
// out of the suite.
func recordTypes() []domain.Record {
	return []domain.Record{
		domain.UserSaid{}, domain.Streamed{}, domain.AssistantSaid{}, domain.CallBegan{}, domain.PermissionGiven{}, domain.CallFinished{},
		domain.PlanSet{}, domain.TitleSet{}, domain.ClientEvent{}, domain.Compacted{}, domain.TurnFinished{}, domain.Unknown{},
	}
}

func blockTypes() []domain.Block {
	return []domain.Block{
		domain.Text{}, domain.Image{}, domain.Audio{}, domain.Resource{}, domain.Link{}, domain.Attachment{},
	}
}

func callContentTypes() []domain.CallContent {
	return []domain.CallContent{domain.ContentBlock{}, domain.Diff{}, domain.FileContent{}}
}

// filler sets every field of a value to something distinct, so that a field
// that is lost, swapped or cut on the way shows.
type filler struct{ n int }

// filled returns a record of the same type as rec with every field set. seed
// varies the values and which members of a union stand in single fields.
func filled(rec domain.Record, seed int) domain.Record {
	v := reflect.New(reflect.TypeOf(rec)).Elem()
	f := filler{n: seed * 1000}
	f.fill(v)
	return v.Interface().(domain.Record)
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n) << 20)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMicro(int64(f.n)).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[domain.FileContent]() && v.Type().Field(i).Name == "Data" {
				continue // never stored
			}
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		f.slice(v)
	case reflect.Interface:
		members := membersOf(v.Type())
		f.member(v, members[f.n%len(members)])
	default:
		panic(fmt.Sprintf("porttest: a domain value holds a %s, which the suite cannot fill", v.Type()))
	}
}

// slice fills a list with two elements, or with one of each member of a
// union, and bytes with both text and what is not text.
func (f *filler) slice(v reflect.Value) {
	switch elem := v.Type().Elem(); elem.Kind() {
	case reflect.Uint8:
		data := []byte(f.text())
		if f.n%2 == 0 {
			data = append(data, 0, 0xff, 0xc3, byte(f.n))
		}
		v.SetBytes(data)
	case reflect.Interface:
		members := membersOf(elem)
		v.Set(reflect.MakeSlice(v.Type(), len(members), len(members)))
		for i, m := range members {
			f.member(v.Index(i), m)
		}
	default:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	}
}

func (f *filler) member(dst reflect.Value, member reflect.Type) {
	v := reflect.New(member).Elem()
	f.fill(v)
	dst.Set(v)
}

// text returns a text with all that encodings trip over.
func (f *filler) text() string {
	return fmt.Sprintf("%d \x00\x01\x1f \"'\\/\b\f\n\r\t <&> \x7f\u0080\u2028\u2029\ufeff\ufffd é☃🚢\U0010ffff \\u0000 %s", f.n, strings.Repeat("x", f.n%7))
}

func membersOf(union reflect.Type) []reflect.Type {
	switch union {
	case reflect.TypeFor[domain.Block]():
		return typesOf(blockTypes())
	case reflect.TypeFor[domain.CallContent]():
		return typesOf(callContentTypes())
	case reflect.TypeFor[domain.Record]():
		return typesOf(recordTypes())
	}
	panic(fmt.Sprintf("porttest: the suite does not know the members of %s", union))
}

func typesOf[T any](members []T) []reflect.Type {
	types := make([]reflect.Type, len(members))
	for i, m := range members {
		types[i] = reflect.TypeOf(m)
	}
	return types
}

// eachText calls visit with every text inside a settable value. Members of
// unions are copied, visited and put back.
func eachText(v reflect.Value, visit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		visit(v)
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), visit)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				eachText(v.Index(i), visit)
			}
		}
	case reflect.Interface:
		inner := reflect.New(v.Elem().Type()).Elem()
		inner.Set(v.Elem())
		eachText(inner, visit)
		v.Set(inner)
	}
}

// withText returns a filled record whose k-th text is replaced, and false
// when it has no k-th text.
func withText(rec domain.Record, k int, text string) (domain.Record, bool) {
	v := reflect.New(reflect.TypeOf(rec)).Elem()
	v.Set(reflect.ValueOf(filled(rec, 1)))
	i, done := 0, false
	eachText(v, func(s reflect.Value) {
		if i == k {
			s.SetString(text)
			done = true
		}
		i++
	})
	return v.Interface().(domain.Record), done
}

// scribble overwrites whatever a value shares with its copies: the elements
// of its lists and what its pointers point at.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Interface:
		scribble(v.Elem())
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			v.Index(i).SetZero()
		}
	}
}
