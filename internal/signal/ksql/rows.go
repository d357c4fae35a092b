package ksql

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// rows reads the response to a query as it arrives: a JSON array of all elements or, in delimited
// format, one element per line. It returns the value column of the first row of each metric.
//
// It reads to the end even if every metric has its row, so that the connection can be reused. An
// endless response is cut off by the context, and what was found is used.
func rows(body io.Reader, metrics []string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	reader := bufio.NewReader(body)
	array, err := beginsArray(reader)
	if err != nil {
		return nil, notJSON(err)
	}
	header := false
	decoder := json.NewDecoder(reader)
	if array {
		if _, err := decoder.Token(); err != nil {
			return nil, notJSON(err)
		}
	}
	for {
		if array && !decoder.More() {
			// The closing bracket, or a truncated response.
			if _, err := decoder.Token(); err != nil {
				return found, brokenOff(err)
			}
			return found, nil
		}
		var element json.RawMessage
		if err := decoder.Decode(&element); err != nil {
			if !array && errors.Is(err, io.EOF) {
				return found, nil
			}
			return found, brokenOff(err)
		}
		columns, err := rowOf(element)
		if err != nil {
			return found, err
		}
		if !array && !header {
			if !isHeader(element) {
				return found, errNotKsql
			}
			header = true
			continue
		}
		if len(columns) == 0 {
			continue
		}
		metric := metrics[0]
		if len(metrics) > 1 {
			if len(columns) < 2 {
				return found, errNotKsql
			}
			metric = name(columns[1])
		}
		if _, ok := found[metric]; !ok {
			found[metric] = columns[0]
		}
	}
}

// beginsArray checks the first character: an array starts with a bracket, delimited elements start
// with a header.
func beginsArray(reader *bufio.Reader) (bool, error) {
	for {
		c, err := reader.ReadByte()
		switch {
		case err != nil:
			return false, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		default:
			return c == '[', reader.UnreadByte()
		}
	}
}

// brokenOff returns the error for a response that ends unexpectedly.
func brokenOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return notJSON(err)
}

// rowOf returns the columns of an element that is a row, and nothing for the header, the final
// message and deletions.
func rowOf(element json.RawMessage) ([]json.RawMessage, error) {
	if element = bytes.TrimSpace(element); element[0] == '[' {
		var columns []json.RawMessage
		if err := json.Unmarshal(element, &columns); err != nil {
			return nil, errNotKsql
		}
		return columns, nil
	}
	var e struct {
		Row *struct {
			Columns   []json.RawMessage `json:"columns"`
			Tombstone bool              `json:"tombstone"`
		} `json:"row"`
		ErrorMessage *failure `json:"errorMessage"`
		failure               // at the top level in delimited responses
	}
	if err := json.Unmarshal(element, &e); err != nil {
		return nil, errNotKsql
	}
	switch {
	case e.ErrorMessage != nil:
		return nil, e.ErrorMessage.err(500)
	case e.ErrorCode != 0:
		return nil, e.err(500)
	case e.Row == nil || e.Row.Tombstone:
		return nil, nil
	}
	return e.Row.Columns, nil
}

// isHeader recognizes the first element of delimited responses.
func isHeader(element json.RawMessage) bool {
	var header struct {
		ColumnNames []string `json:"columnNames"`
	}
	return json.Unmarshal(element, &header) == nil && header.ColumnNames != nil
}
