package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// hostile clears the screen, forges a line and reverses the writing direction.
const hostile = "x\x1b[2J\r\nforged\tcell\u202eetirw\u009b31m\x7f\u200b"

// Text that others have written is escaped wherever a command prints it, and JSON stays equivalent.
func TestCommandOutputIsEscaped(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(api.Problem{
				Title: hostile, Status: 422, Detail: hostile, Errors: api.FieldErrors{{Field: hostile, Message: hostile}, {Field: "b", Message: hostile}},
			})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": []auth.Token{{ID: hostile, Role: auth.Role(hostile), Namespaces: []string{hostile}, Description: hostile}}})
	}))
	defer answers.Close()
	file := filepath.Join(t.TempDir(), "request.json")
	request, err := json.Marshal(map[string]any{"objects": []any{map[string]any{
		"kind": "cluster", "metadata": map[string]any{"name": "c1", "labels": map[string]string{"a": hostile}, hostile: 1},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, request, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"token", "list", "--endpoint", answers.URL},
		{"token", "list", "--json", "--endpoint", answers.URL},
		{"token", "create", "--role", "admin", "--endpoint", answers.URL},
		{"token", "revoke", hostile, "--endpoint", answers.URL},
		{"simulate", file},
		{"simulate", hostile},
		{hostile},
		{"serve", "--data-dir", t.TempDir(), "--listen", hostile},
	} {
		t.Run(strings.Join(args[:min(2, len(args))], " "), func(t *testing.T) {
			code, stdout, stderr := command(t, args...)
			for name, text := range map[string]string{"output": stdout, "message": stderr} {
				if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("the %s contains %q: %q", name, text[i:i+1], text)
				}
				if strings.Contains(text, "\nforged") || strings.Contains(text, "\n  forged") {
					t.Errorf("the %s contains a forged line: %q", name, text)
				}
			}
			if len(args) > 1 && args[1] == "list" && code != 0 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
	var list []auth.Token
	if err := json.Unmarshal([]byte(mustCommand(t, "token", "list", "--json", "--endpoint", answers.URL)), &list); err != nil || len(list) != 1 || list[0].Description != hostile {
		t.Errorf("unexpected JSON %+v, %v", list, err)
	}
	table := strings.Split(strings.TrimSuffix(mustCommand(t, "token", "list", "--endpoint", answers.URL), "\n"), "\n")
	if len(table) != 2 {
		t.Errorf("the table has %d lines: %s", len(table), fmt.Sprintf("%q", table))
	}
}
