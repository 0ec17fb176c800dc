/** Checks the client against the published tables, by a real worker: npx tsc && node --test dist/tables.test.js */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { FollowUpClient, type FollowUpRequest, followUpWorkflowId } from 'agent-follow-up-client';

interface Tables {
  vectors: { projectId: string; jobId: string; requestId: string; workflowId: string }[];
  requests: { name: string; problem: string | null; request: FollowUpRequest | null }[];
}
const load = createRequire(import.meta.url) as (file: string) => Tables;
const { vectors } = load('agent-follow-up-client/workflow-id-vectors.json');
const { requests } = load('agent-follow-up-client/requests.json');

const followUps = await FollowUpClient.connect();
after(() => followUps.close());

for (const { projectId, jobId, requestId, workflowId } of vectors) {
  test(workflowId, () => {
    assert.equal(followUpWorkflowId(projectId, jobId, requestId), workflowId);
  });
}

for (const [n, { name, problem, request }] of requests.entries()) {
  // The client makes the workflow id itself.
  if (name === 'a requestId that the workflow id is not made of') continue;
  test(name, async () => {
    const requestId = request?.requestId ?? `typescript-${n}`;
    const named = typeof request === 'object' && !Array.isArray(request) && request !== null;
    const asked = (named ? { ...request, requestId } : request) as FollowUpRequest & { requestId: string };
    const ended = followUps.start(asked).then((handle) => handle.result());
    // The requests name a job that isn't there, so that an accepted one sends nothing.
    const message = problem === null ? 'The service knows no such job' : `${problem}: `;
    await assert.rejects(ended, (error: Error) => error.message.includes(message));
  });
}
