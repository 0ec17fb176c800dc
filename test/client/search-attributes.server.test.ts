import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection, type ConnectionLike } from '@temporalio/client';
import { ensureSearchAttributes, FollowUpClient, SearchAttributesError } from '../../src/entries/client';
import { FOLLOW_UP_WORKFLOW, SEARCH_ATTRIBUTE_TYPES, SEARCH_ATTRIBUTES } from '../../src/contract/names';
import { outcomeAttribute } from '../../src/contract/follow-up-start-options';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { eventually } from '../../tools/lib/eventually';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { temporal } from '../harness/temporal';

let server: DevServer;
let connection: Connection;
beforeAll(async () => {
  server = await startDevServer({ cli: temporal().cli });
  connection = await Connection.connect({ address: server.address });
});
afterAll(async () => {
  await connection.close();
  await server.stop();
});

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' };
const KEYWORD = 2;
const INT = 3;
const KEYWORD_LIST = 7;
const ALL = Object.fromEntries(
  Object.entries(SEARCH_ATTRIBUTE_TYPES).map(([name, type]) => [
    name,
    type === 'Keyword' ? KEYWORD : KEYWORD_LIST,
  ]),
);

/** Returns the connection to a Temporal server that rejects calls of the operator service, as Temporal Cloud does. */
function withoutOperator(keys: Readonly<Record<string, number>>): ConnectionLike {
  const error = { code: 7, details: 'Request unauthorized.', metadata: {} };
  const rejectCall = () => Promise.reject(Object.assign(new Error('7 PERMISSION_DENIED'), error));
  const call = (_: unknown, made: () => unknown) => made();
  return {
    operatorService: { listSearchAttributes: rejectCall, addSearchAttributes: rejectCall },
    workflowService: { getSearchAttributes: () => Promise.resolve({ keys }) },
    ...{ withDeadline: call, withMetadata: call },
  } as unknown as ConnectionLike;
}

describe('a namespace', () => {
  it('without the search attributes rejects starts and lists, and names the commands that set it up', async () => {
    const followUps = new FollowUpClient(new Client({ connection }));
    const words = /Nothing was started.*"setup".*temporal operator search-attribute create/s;
    await expect(followUps.start(REQUEST)).rejects.toThrow(words);
    await expect(collectWorkflowIds(followUps.list({ projectId: 'p' }))).rejects.toThrow(
      SearchAttributesError,
    );
  });

  it('gets the missing attributes once from concurrent callers, and then accepts starts at once', async () => {
    const searchAttributes = { AgentJob: KEYWORD };
    await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
    const ensure = () => ensureSearchAttributes(connection, 'default');
    const registered = new Set((await Promise.all([ensure(), ensure()])).flat());
    expect([...registered, 'AgentJob'].sort()).toEqual([...SEARCH_ATTRIBUTES].sort());
    expect(await ensure()).toEqual([]);
    const followUps = new FollowUpClient(new Client({ connection }));
    expect(await followUps.start(REQUEST)).toMatchObject({ attached: false });
  });

  it('finds a follow-up by its outcome and by its verdict, each with =', async () => {
    await ensureSearchAttributes(connection, 'default');
    const client = new Client({ connection });
    const followUps = new FollowUpClient(client);
    const ended = {
      DeliveryUnknown: 'unknown',
      completed: 'accepted',
      DeadlineExceeded: 'unknown',
      FollowUpRejected: 'rejected',
      JobNotFound: 'not-sent',
    } as const;
    for (const [outcome, verdict] of Object.entries(ended))
      await client.workflow.start(FOLLOW_UP_WORKFLOW, {
        workflowId: outcome,
        taskQueue: 'no-worker',
        typedSearchAttributes: [outcomeAttribute(outcome, verdict)],
      });
    const query = (value: string) => `FollowUpOutcome = "${value}"`;
    const find = async (value: string) =>
      (await collectWorkflowIds(client.workflow.list({ query: query(value) }))).sort();
    await eventually(
      'the list shows all follow-ups',
      async () =>
        (await collectWorkflowIds(client.workflow.list({ query: `TaskQueue = "no-worker"` }))).length === 5,
    );
    expect(await find('DeliveryUnknown')).toEqual(['DeliveryUnknown']);
    expect(await find('unknown')).toEqual(['DeadlineExceeded', 'DeliveryUnknown']);
    expect(await find('not-sent')).toEqual(['JobNotFound']);
    expect(await find('rejected')).toEqual(['FollowUpRejected']);
    expect(await find('FollowUpRejected')).toEqual(['FollowUpRejected']);
    // A part of a value finds nothing.
    expect(await find('Delivery')).toEqual([]);
    expect(await find('sent')).toEqual([]);
    expect((await collectWorkflowIds(followUps.list({ outcome: 'unknown' }))).sort()).toEqual(
      await find('unknown'),
    );
    for await (const found of followUps.list({ outcome: 'DeliveryUnknown' }))
      expect(found).toMatchObject({ outcome: 'DeliveryUnknown', verdict: 'unknown' });
  });

  it('that does not exist is named in the error', async () => {
    await expect(ensureSearchAttributes(connection, 'nowhere')).rejects.toThrow(
      /The namespace "nowhere" .*does not exist.*temporal operator namespace create --namespace nowhere/,
    );
    const followUps = new FollowUpClient(new Client({ connection, namespace: 'nowhere' }));
    await expect(followUps.getHandle('f').describe()).rejects.toMatchObject({
      code: 'NAMESPACE_NOT_SET_UP',
      message: expect.stringContaining('The namespace "nowhere"'),
    });
  });
});

it.each<[string, Record<string, number>, RegExp]>([
  ['complete attributes are accepted', ALL, /^$/],
  [
    'a missing attribute is reported with the exact commands',
    Object.fromEntries(Object.entries(ALL).filter(([name]) => name !== 'AgentJob')),
    /lacks the search attributes AgentJob.*\n {2}temporal operator search-attribute create --namespace n --type Keyword --name AgentJob\n.*tcld/,
  ],
  [
    'an attribute with another type is reported by its name',
    { ...ALL, AgentJob: INT },
    /AgentJob \(must be Keyword\)/,
  ],
  [
    'FollowUpOutcome as a Keyword is reported by its name',
    { ...ALL, FollowUpOutcome: KEYWORD },
    /FollowUpOutcome \(must be KeywordList\)/,
  ],
  [
    'a missing FollowUpOutcome is reported with its type',
    Object.fromEntries(Object.entries(ALL).filter(([name]) => name !== 'FollowUpOutcome')),
    /create --namespace n --type KeywordList --name FollowUpOutcome\n/,
  ],
])('without permission for the operator service, %s', async (_, keys, problem) => {
  const ensured = ensureSearchAttributes(withoutOperator(keys), 'n');
  expect(await ensured.then((registered) => registered.join(), String)).toMatch(problem);
});
