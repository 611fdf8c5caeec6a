package search

// A signature says, by field, how often a term occurs (tf) and how many terms
// the field has (length). Where tf is 0, length is 0 too.
type signature [fields]struct{ tf, length uint16 }

// onlySaid reports whether the term is in the instructions and in no other field.
func (s *signature) onlySaid() bool {
	for f := range s[:inInstructions] {
		if s[f].tf > 0 {
			return false
		}
	}
	return true
}

// append appends s as it stands in [Index.signatures]: for each field in which
// the term occurs its number, tf and length, the last two in two bytes each, the
// lower one first.
func (s *signature) append(dst []byte) []byte {
	for f, in := range s {
		if in.tf > 0 {
			dst = append(dst, byte(f), byte(in.tf), byte(in.tf>>8), byte(in.length), byte(in.length>>8))
		}
	}
	return dst
}

// signatureOf reads what append wrote.
func signatureOf(text []byte) (s signature) {
	for ; len(text) > 0; text = text[5:] {
		in := &s[text[0]]
		in.tf = uint16(text[1]) | uint16(text[2])<<8
		in.length = uint16(text[3]) | uint16(text[4])<<8
	}
	return s
}
