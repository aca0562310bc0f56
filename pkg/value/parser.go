package value

// builder makes values of type V out of what the parser finds. Text and names
// are only valid during the call.
type builder[V any] interface {
	null() V
	boolean(bool) V
	integer(int64) V
	float(float64) V
	text([]byte) V
	array([]V) V
	object([]member[V]) V // null members are absent, of a name's values the last one counts
}

// member is a field of an object as it stands in the JSON.
type member[V any] struct {
	name  []byte
	value V
}

// parser is the one grammar behind every decoding function.
type parser[V any, B builder[V]] struct {
	scanner
	build   B
	depth   int
	items   []V         // the elements of all open arrays, a stack
	members []member[V] // the fields of all open objects, a stack
}

// document reads exactly one value.
func (p *parser[V, B]) document() (V, *Error) {
	v, err := p.value()
	if err == nil {
		err = p.end()
	}
	return v, err
}

func (p *parser[V, B]) value() (v V, err *Error) {
	switch c := p.peek(); c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		text, err := p.text()
		if err != nil {
			return v, err
		}
		return p.build.text(text), nil
	case 't':
		return p.build.boolean(true), p.word("true")
	case 'f':
		return p.build.boolean(false), p.word("false")
	case 'n':
		return p.build.null(), p.word("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		i, f, isInt, err := p.number()
		switch {
		case err != nil:
			return v, err
		case isInt:
			return p.build.integer(i), nil
		default:
			return p.build.float(f), nil
		}
	default:
		return v, p.unexpected("a value")
	}
}

// enter counts a level of nesting.
func (p *parser[V, B]) enter() *Error {
	if p.depth == MaxDepth {
		return tooDeep()
	}
	p.depth++
	p.pos++ // the bracket
	return nil
}

func (p *parser[V, B]) array() (v V, err *Error) {
	if err := p.enter(); err != nil {
		return v, err
	}
	base := len(p.items)
	for p.peek() != ']' {
		if len(p.items) > base {
			if !p.at(',') {
				return v, p.unexpected("',' or ']'")
			}
			p.pos++
		}
		item, err := p.value()
		if err != nil {
			return v, err.in(indexStep(len(p.items) - base + 1))
		}
		p.items = append(p.items, item)
	}
	p.pos++
	p.depth--
	v = p.build.array(p.items[base:])
	clear(p.items[base:])
	p.items = p.items[:base]
	return v, nil
}

func (p *parser[V, B]) object() (v V, err *Error) {
	if err := p.enter(); err != nil {
		return v, err
	}
	base := len(p.members)
	for p.peek() != '}' {
		if len(p.members) > base {
			if !p.at(',') {
				return v, p.unexpected("',' or '}'")
			}
			p.pos++
		}
		name, err := p.name()
		if err != nil {
			return v, err
		}
		item, err := p.value()
		if err != nil {
			return v, err.in(fieldStep(string(name)))
		}
		p.members = append(p.members, member[V]{name, item})
	}
	p.pos++
	p.depth--
	v = p.build.object(p.members[base:])
	clear(p.members[base:])
	p.members = p.members[:base]
	return v, nil
}

// name reads the name of a field and the colon after it.
func (s *scanner) name() ([]byte, *Error) {
	if s.peek() != '"' {
		return nil, s.unexpected("the name of a field in quotes")
	}
	name, err := s.text()
	if err != nil {
		return nil, err
	}
	if s.peek() != ':' {
		return nil, s.unexpected("':'")
	}
	s.pos++
	return name, nil
}
