// Package vector finds the vectors that are near another. It keeps the signs of
// each vector's coordinates, after a fixed rotation, in the table chunk_signs: to read
// them all is quick, and the share of signs in which two vectors differ is their angle
// (Charikar, STOC 2002). The caller compares the vectors that it chooses exactly.
package vector

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// Normal returns v with length 1, as Encode stores it; false for one that has no length
// or is not finite.
func Normal(v []float32) ([]float32, bool) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, false
	}
	out, scale := make([]float32, len(v)), 1/math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out, true
}

// Encode returns v as it is stored: float32, little endian; nil for nil.
func Encode(v []float32) []byte {
	if v == nil {
		return nil
	}
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Decode returns the vector that Encode has stored.
func Decode(raw []byte) ([]float32, error) {
	if len(raw)%4 != 0 {
		return nil, errors.New("a stored vector is damaged")
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}

// Similarity returns the cosine of the angle between v and a stored vector, both of
// length 1; -1 where they have not the same number of dimensions.
func Similarity(v []float32, stored []byte) float64 {
	if len(stored) != 4*len(v) {
		return -1
	}
	sum := float32(0)
	for i, x := range v {
		sum += x * math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:]))
	}
	return float64(sum)
}

// maxSigns limits the signs of a vector.
const maxSigns = 1024

// words returns how many words of 64 signs a vector has.
func words(dimensions int) int {
	return min(maxSigns, size(dimensions)) / 64
}

// size is the power of two, from 64, that has room for the dimensions.
func size(dimensions int) int {
	n := 64
	for n < dimensions {
		n *= 2
	}
	return n
}

// signs returns the signs of v after two rotations, each of them random signs and a
// Hadamard transform: so each states something about all dimensions.
func signs(v []float32) []uint64 {
	x := make([]float32, size(len(v)))
	copy(x, v)
	for round := range uint64(2) {
		seed := 0x9e3779b97f4a7c15 * (round + 1)
		for i := range x {
			if mix(seed+uint64(i))&1 == 1 {
				x[i] = -x[i]
			}
		}
		hadamard(x)
	}
	out := make([]uint64, words(len(v)))
	for i := range 64 * len(out) {
		if x[i] > 0 {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}

// mix is the finalizer of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func hadamard(x []float32) {
	for half := 1; half < len(x); half *= 2 {
		for i := 0; i < len(x); i += 2 * half {
			for k := i; k < i+half; k++ {
				x[k], x[k+half] = x[k]+x[k+half], x[k]-x[k+half]
			}
		}
	}
}

// differ returns how many signs of a slot are not those of want.
func differ(want []uint64, slot []byte) (n int) {
	for i, w := range want {
		n += bits.OnesCount64(w ^ binary.LittleEndian.Uint64(slot[8*i:]))
	}
	return n
}
