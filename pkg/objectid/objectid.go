package objectid

import "strings"

// Partitions is the fixed number of partitions objects are spread over. It is
// part of the data format: changing it moves every object.
const Partitions = 256

// ID is an object's identity. It is comparable and usable as a map key; two
// ids are the same object when their bytes are equal.
type ID struct {
	// Class is the declared class, matching [A-Za-z][A-Za-z0-9_]*.
	Class string
	// Name is the instance's name, 1 to 128 bytes of UTF-8 without control
	// characters.
	Name string
}

// String gives "Class/name", which [Parse] reads back.
func (id ID) String() string { return id.Class + "/" + id.Name }

// Parse reads "Class/name". It splits at the first '/', so a name may contain
// further ones, and validates both parts.
func Parse(s string) (ID, error) {
	class, name, found := strings.Cut(s, "/")
	if !found {
		return ID{}, bad("%s has no '/'; write an object as Class/name", quote(s))
	}
	id := ID{Class: class, Name: name}
	if err := id.Validate(); err != nil {
		return ID{}, err
	}
	return id, nil
}

// Token gives the id as two subject tokens, "<escaped class>.<escaped name>".
// Distinct ids have distinct tokens.
func (id ID) Token() string { return Escape(id.Class) + "." + Escape(id.Name) }

// File gives the relative path of the object's database with '/' as separator,
// "<escaped class>/<2 hex>/<escaped name>.db". The two digits are a hash of the
// name; they keep folders small. Distinct ids have distinct files, also where
// the file system ignores case.
func (id ID) File() string {
	h := fold(fnv1a(fnvOffset, id.Name))
	return Escape(id.Class) + "/" + string([]byte{lowerHex[h>>4], lowerHex[h&15]}) + "/" + Escape(id.Name) + ".db"
}

// Partition gives the partition the object belongs to, 0 to 255. It depends on
// nothing but the id and is the same in every version.
func (id ID) Partition() int {
	h := fnv1a(fnvOffset, id.Class)
	h = fnv1a(h, "/")
	return int(fold(fnv1a(h, id.Name)))
}

// The constants of 64-bit FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// fnv1a continues the FNV-1a hash h with s.
func fnv1a(h uint64, s string) uint64 {
	for i := range len(s) {
		h ^= uint64(s[i])
		h *= fnvPrime
	}
	return h
}

// fold makes one byte of a hash that depends on all of it.
func fold(h uint64) byte {
	h ^= h >> 32
	h ^= h >> 16
	h ^= h >> 8
	return byte(h)
}
