// Sends one follow-up and prints its pull request: go run . PROJECT JOB REQUEST_ID PROMPT
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"regexp"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"
)

// Receipt has the fields of the receipt that this example uses.
type Receipt struct {
	PromptDigest *string `json:"promptDigest"`
	Delivery     struct {
		Verdict string `json:"verdict"`
	} `json:"delivery"`
}

// Job has the fields of the result that this example uses.
type Job struct {
	Status  string  `json:"status"`
	PrLink  *string `json:"prLink"`
	Receipt Receipt `json:"receipt"`
}

// Details is the first detail of every failure of a follow-up.
type Details struct {
	Receipt Receipt `json:"receipt"`
}

// exitOnConflict exits if the follow-up with this request ID has another prompt, because this prompt was not sent.
func exitOnConflict(receipt Receipt, prompt string) {
	digest := sha256.Sum256([]byte(prompt))
	if receipt.PromptDigest != nil && *receipt.PromptDigest != hex.EncodeToString(digest[:]) {
		log.Fatal("conflict: the follow-up with this request ID has another prompt; this prompt was not sent")
	}
}

var uuid = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func workflowID(projectID, jobID, requestID string) string {
	parts := []string{"follow-up"}
	for _, part := range []string{projectID, jobID, requestID} {
		if uuid.MatchString(part) {
			part = strings.ToLower(part)
		}
		parts = append(parts, strings.ReplaceAll(url.QueryEscape(part), "+", "%20"))
	}
	return strings.Join(parts, ":")
}

func followUp(ctx context.Context, c client.Client, id string, request any) (job Job, err error) {
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        id,
		TaskQueue: "follow-up",
		// The start attaches to a running follow-up. If the follow-up has ended, the SDK returns the ended run, and nothing is sent.
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, "followUp", request)
	if err != nil {
		return job, err
	}
	return job, run.Get(ctx, &job)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: go run . PROJECT JOB REQUEST_ID PROMPT")
	}
	project, job, request, prompt := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	options, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_*, temporal.toml
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	result, err := followUp(context.Background(), c, workflowID(project, job, request), map[string]string{
		"projectId": project, "jobId": job, "requestId": request, "prompt": prompt,
		// The demo's sandbox has no stale responses. For your agent service, remove `maxStaleness`.
		"maxStaleness": "2s",
	})
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		var details Details
		if err := failure.Details(&details); err != nil {
			log.Fatal(err)
		}
		exitOnConflict(details.Receipt, prompt)
		log.Fatalf("%s, delivery %s: %s", failure.Type(), details.Receipt.Delivery.Verdict, failure.Message())
	}
	if err != nil {
		log.Fatal(err)
	}
	exitOnConflict(result.Receipt, prompt)
	link := "null"
	if result.PrLink != nil {
		link = *result.PrLink
	}
	fmt.Println(result.Status, link)
}
