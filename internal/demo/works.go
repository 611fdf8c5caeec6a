package demo

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
)

// A disk has the files of one server by their clean paths.
type disk struct {
	mu    sync.Mutex
	files map[string]string
}

func (d *disk) read(in struct{ Path, Encoding string }) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ok := d.files[path.Clean(in.Path)]
	switch {
	case !ok:
		return "", fmt.Errorf("%s does not exist", in.Path)
	case in.Encoding == "base64":
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	}
	return text, nil
}

func (d *disk) write(in struct {
	Path, Content string
	Overwrite     bool
}) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := path.Clean(in.Path)
	if _, ok := d.files[file]; ok && !in.Overwrite {
		return "", fmt.Errorf("%s exists; set overwrite to replace it", in.Path)
	}
	d.files[file] = in.Content
	return fmt.Sprintf("Wrote %d bytes to %s.", len(in.Content), in.Path), nil
}

func csvToJSON(in struct {
	CSV, Delimiter string
	InferTypes     bool `json:"infer_types"`
}) (string, error) {
	r := csv.NewReader(strings.NewReader(in.CSV))
	if in.Delimiter != "" {
		r.Comma = rune(in.Delimiter[0])
	}
	rows, err := r.ReadAll()
	if err != nil {
		return "", err
	}
	objects := []map[string]any{}
	for i, row := range rows {
		if i == 0 {
			continue
		}
		object := make(map[string]any)
		for j, cell := range row {
			object[rows[0][j]] = cell
			var typed any
			if in.InferTypes && json.Unmarshal([]byte(cell), &typed) == nil {
				switch typed.(type) {
				case float64, bool:
					object[rows[0][j]] = typed
				}
			}
		}
		objects = append(objects, object)
	}
	text, err := json.Marshal(objects)
	return string(text), err
}

// solve eliminates by Gauss and Jordan, the row with the largest pivot first.
func solve(in struct {
	Matrix    [][]float64
	Constants []float64
}) (string, error) {
	n := len(in.Constants)
	if len(in.Matrix) != n {
		return "", fmt.Errorf("there are %d equations, but %d constants", len(in.Matrix), n)
	}
	m := make([][]float64, n)
	for i, row := range in.Matrix {
		if len(row) != n {
			return "", errors.New("the matrix is not square")
		}
		m[i] = append(slices.Clone(row), in.Constants[i])
	}
	for i := range m {
		for k := i + 1; k < n; k++ {
			if math.Abs(m[k][i]) > math.Abs(m[i][i]) {
				m[i], m[k] = m[k], m[i]
			}
		}
		if m[i][i] == 0 {
			return "", errors.New("the system has no unique solution")
		}
		for k := range m {
			if factor := m[k][i] / m[i][i]; k != i {
				for j := i; j <= n; j++ {
					m[k][j] -= factor * m[i][j]
				}
			}
		}
	}
	x := make([]float64, n)
	for i := range m {
		x[i] = m[i][n] / m[i][i]
	}
	text, err := json.Marshal(x)
	return string(text), err
}
