import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import {
  connectClient,
  ensureSearchAttributes,
  FollowUpClient,
  SearchAttributesError,
} from '../../src/entries/client';
import { FOLLOW_UP_WORKFLOW, SEARCH_ATTRIBUTES } from '../../src/contract/names';
import { outcomeAttribute } from '../../src/contract/follow-up-start-options';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { eventually } from '../../tools/lib/eventually';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { temporal } from '../harness/temporal';
import { type Rejection, TemporalGate } from '../harness/temporal-gate';

let server: DevServer;
let connection: Connection;
beforeAll(async () => {
  // As in production, the server's front end caches the attributes. Other dev servers read them for each call.
  const dynamicConfig = { 'system.forceSearchAttributesCacheRefreshOnRead': false };
  server = await startDevServer({ cli: temporal().cli, dynamicConfig });
  connection = await Connection.connect({ address: server.address });
});
afterAll(async () => {
  await connection.close();
  await server.stop();
});

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' };
const KEYWORD = 2;
const INT = 3;

/**
 * The ways in which Temporal Cloud and gateways reject the operator service. test/worker/gateway.long.test.ts also has UNAVAILABLE,
 * after which the SDK repeats a call for ten seconds.
 */
const REJECTIONS: readonly (readonly [string, Rejection])[] = [
  ['PERMISSION_DENIED', { grpcStatus: 7 }],
  ['UNIMPLEMENTED', { grpcStatus: 12 }],
  ['NOT_FOUND', { grpcStatus: 5 }],
  ['a plain HTTP 403', { httpStatus: 403 }],
  ['a plain HTTP 404', { httpStatus: 404 }],
];

/** Checks the namespace through a gateway that rejects some calls. @returns the registered attributes, or the error */
async function ensureBehindGateway(path: RegExp, rejection: Rejection): Promise<string> {
  const gate = await TemporalGate.open(server.address);
  gate.reject(path, rejection);
  const { client, close } = await connectClient({ env: { TEMPORAL_ADDRESS: gate.address } });
  const ensured = await ensureSearchAttributes(client.connection, 'default').then(String, String);
  await close();
  await gate.close();
  return ensured;
}

async function setAttributes(type: number | null, name = 'AgentJob'): Promise<void> {
  const { operatorService, workflowService } = connection;
  await operatorService.removeSearchAttributes({ namespace: 'default', searchAttributes: [name] });
  const searchAttributes = { [name]: type ?? 0 };
  if (type !== null) await operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
  const canQuery = (query: string) =>
    workflowService.listWorkflowExecutions({ namespace: 'default', query }).then(
      () => true,
      () => false,
    );
  // The Temporal server uses the change only after its cache has expired.
  await eventually('queries use the changed attribute', async () => {
    const [asText, asNumber] = [await canQuery(`${name} = 'x'`), await canQuery(`${name} = 1`)];
    return type === null ? !asText && !asNumber : type === INT ? asNumber && !asText : asText;
  });
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

  it('finds a follow-up by its outcome, its verdict and its evidence, each with =', async () => {
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
        typedSearchAttributes: [
          outcomeAttribute(outcome, verdict, outcome === 'completed' ? 'unchanged' : null),
        ],
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
    expect(await find('unchanged')).toEqual(['completed']);
    expect(await find('seen-active')).toEqual([]);
    // A part of a value finds nothing.
    expect(await find('Delivery')).toEqual([]);
    expect(await find('sent')).toEqual([]);
    expect((await collectWorkflowIds(followUps.list({ outcome: 'unknown' }))).sort()).toEqual(
      await find('unknown'),
    );
    for await (const found of followUps.list({ outcome: 'unchanged' }))
      expect(found).toMatchObject({ outcome: 'completed', verdict: 'accepted', evidence: 'unchanged' });
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

describe('behind a gateway that rejects the operator service', () => {
  const COMMANDS =
    /lacks the search attributes AgentJob, .*\n {2}temporal operator search-attribute create --namespace default --type Keyword --name AgentJob\n.*tcld/s;

  it.each(REJECTIONS)(
    'with %s, a visibility query proves that all attributes exist',
    async (_, rejection) => {
      await ensureSearchAttributes(connection, 'default');
      expect(await ensureBehindGateway(/OperatorService/, rejection)).toBe('');
    },
  );

  it('a missing attribute, and an attribute of another type, are reported with the commands', async () => {
    await setAttributes(null);
    const rejection = { grpcStatus: 7 } as const;
    expect(await ensureBehindGateway(/OperatorService/, rejection)).toMatch(COMMANDS);
    await setAttributes(INT);
    expect(await ensureBehindGateway(/OperatorService/, rejection)).toMatch(COMMANDS);
    await setAttributes(KEYWORD);
    expect(await ensureBehindGateway(/OperatorService/, rejection)).toBe('');
  });

  it('that permits only the registration, a missing attribute is registered', async () => {
    await setAttributes(null);
    expect(await ensureBehindGateway(/ListSearchAttributes/, { grpcStatus: 7 })).toBe('AgentJob');
  });

  it.each(REJECTIONS)(
    'and visibility queries with %s, the error states that it is unknown whether the attributes exist',
    async (_, rejection) => {
      expect(await ensureBehindGateway(/OperatorService|ListWorkflowExecutions/, rejection)).toMatch(
        /^UnknownSearchAttributesError: It is unknown whether the namespace default has .* ListSearchAttributes \(.+\) and ListWorkflowExecutions \(.+\)/,
      );
    },
  );
});

it.each<[string, number, string, RegExp]>([
  ['AgentJob as an Int', INT, 'AgentJob', /AgentJob \(must be Keyword\)/],
  ['FollowUpOutcome as a Keyword', KEYWORD, 'FollowUpOutcome', /FollowUpOutcome \(must be KeywordList\)/],
])('%s is reported by its name and the required type', async (_, type, name, problem) => {
  await setAttributes(type, name);
  await expect(ensureSearchAttributes(connection, 'default')).rejects.toThrow(problem);
  await setAttributes(null, name);
});
