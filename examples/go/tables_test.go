package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"
)

func read(t *testing.T, file string, table any) {
	t.Helper()
	content, err := os.ReadFile("../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, table); err != nil {
		t.Fatal(err)
	}
}

func TestWorkflowIDs(t *testing.T) {
	var table struct {
		Vectors []struct{ ProjectID, JobID, RequestID, WorkflowID string }
	}
	read(t, "workflow-id-vectors.json", &table)
	for _, row := range table.Vectors {
		if made := workflowID(row.ProjectID, row.JobID, row.RequestID); made != row.WorkflowID {
			t.Errorf("made %s, not %s", made, row.WorkflowID)
		}
	}
}

func TestRequests(t *testing.T) {
	var table struct {
		Requests []struct {
			Name    string
			Problem *string
			Request any
		}
	}
	read(t, "requests.json", &table)
	c, err := client.Dial(envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for n, row := range table.Requests {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			_, err := followUp(context.Background(), c, fmt.Sprintf("requests:go:%d", n), row.Request)
			var failure *temporal.ApplicationError
			if !errors.As(err, &failure) {
				t.Fatalf("it ended with %v", err)
			}
			// The requests name a job that isn't there, so that an accepted one sends nothing.
			expected, words := "JobNotFound", ""
			if row.Problem != nil {
				expected, words = "InvalidRequest", *row.Problem+": "
			}
			if failure.Type() != expected || !strings.Contains(failure.Message(), words) {
				t.Errorf("it ended with %s: %s", failure.Type(), failure.Message())
			}
		})
	}
}
