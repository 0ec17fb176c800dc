import { expect, it, jest } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { sha256Hex } from '../../src/contract/ids';
import { MEMO_PROMPT_DIGEST } from '../../src/contract/names';
import { readPromptDigest } from '../../src/temporal/workflow-executions';

const DIGEST = sha256Hex('Hello');

it.each<[string, Record<string, string>, object, string | undefined, number]>([
  ['the memo, without a request', { [MEMO_PROMPT_DIGEST]: DIGEST }, {}, DIGEST, 0],
  ['the message in the input', {}, { prompt: 'Hello' }, DIGEST, 1],
  ['the state that a run continues', {}, { continued: { promptDigest: DIGEST } }, DIGEST, 1],
  ['nothing if the input is not a request', {}, { prompt: 7 }, undefined, 1],
])('the digest of a prompt comes from %s', async (_, memo, input, digest, requests) => {
  const attributes = {
    input: { payloads: [defaultPayloadConverter.toPayload(input)] },
    continuedExecutionRunId: 'r1',
    firstExecutionRunId: 'r1',
  };
  const events = [{ workflowExecutionStartedEventAttributes: attributes }];
  const getWorkflowExecutionHistory = jest.fn(() => Promise.resolve({ history: { events } }));
  const loadedDataConverter = { payloadConverter: defaultPayloadConverter, payloadCodecs: [] };
  const client = {
    workflowService: { getWorkflowExecutionHistory },
    options: { namespace: 'default', loadedDataConverter },
  } as unknown as Client;
  expect(await readPromptDigest(client, { memo, workflowId: 'f', runId: 'r2' })).toBe(digest);
  expect(getWorkflowExecutionHistory).toHaveBeenCalledTimes(requests);
});
