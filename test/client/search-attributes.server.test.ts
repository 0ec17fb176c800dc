import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection, type ConnectionLike } from '@temporalio/client';
import { ensureSearchAttributes, FollowUpClient, SearchAttributesError } from '../../src/client';
import { SEARCH_ATTRIBUTES } from '../../src/core/names';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { listed } from '../harness/listed';
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

const ASKED = { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' };
const KEYWORD = 2;
const INT = 3;
const ALL = Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD]));

/** The connection of a service that refuses operator calls, as Temporal Cloud does. */
function withoutOperator(keys: Readonly<Record<string, number>>): ConnectionLike {
  const error = { code: 7, details: 'Request unauthorized.', metadata: {} };
  const refuse = () => Promise.reject(Object.assign(new Error('7 PERMISSION_DENIED'), error));
  const call = (_: unknown, made: () => unknown) => made();
  return {
    operatorService: { listSearchAttributes: refuse, addSearchAttributes: refuse },
    workflowService: { getSearchAttributes: () => Promise.resolve({ keys }) },
    ...{ withDeadline: call, withMetadata: call },
  } as unknown as ConnectionLike;
}

describe('a namespace that is not set up', () => {
  it('refuses a start with what to run, and nothing is started', async () => {
    const followUps = new FollowUpClient(new Client({ connection }));
    const words = /Nothing was started.*"setup".*temporal operator search-attribute create/s;
    await expect(followUps.start(ASKED)).rejects.toThrow(words);
    await expect(listed(followUps.list({ projectId: 'p' }))).rejects.toThrow(SearchAttributesError);
  });

  it('gets what is missing, once, by any number of callers, and works at once', async () => {
    const searchAttributes = { AgentJob: KEYWORD };
    await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
    const ensure = () => ensureSearchAttributes(connection, 'default');
    const registered = new Set((await Promise.all([ensure(), ensure()])).flat());
    expect([...registered, 'AgentJob'].sort()).toEqual([...SEARCH_ATTRIBUTES].sort());
    expect(await ensure()).toEqual([]);
    const followUps = new FollowUpClient(new Client({ connection }));
    expect(await followUps.start(ASKED)).toMatchObject({ attached: false });
  });

  it('that does not exist is named', async () => {
    await expect(ensureSearchAttributes(connection, 'nowhere')).rejects.toThrow(
      /no namespace "nowhere".*temporal operator namespace create --namespace nowhere/,
    );
    const followUps = new FollowUpClient(new Client({ connection, namespace: 'nowhere' }));
    await expect(followUps.getHandle('f').describe()).rejects.toMatchObject({
      code: 'NOT_SET_UP',
      message: expect.stringContaining('no namespace "nowhere"'),
    });
  });
});

it.each<[string, Record<string, number>, RegExp]>([
  ['that are there are enough', ALL, /^$/],
  [
    'of which one is missing are asked for with the exact commands',
    Object.fromEntries(Object.entries(ALL).filter(([name]) => name !== 'AgentJob')),
    /lacks the search attributes AgentJob.*\n {2}temporal operator search-attribute create --namespace n --type Keyword --name AgentJob\n.*tcld/,
  ],
  ['of which one has another type are refused by its name', { ...ALL, AgentJob: INT }, /Keyword: AgentJob/],
])('where the operator service is refused, attributes %s', async (_, keys, problem) => {
  const found = ensureSearchAttributes(withoutOperator(keys), 'n');
  expect(await found.then((registered) => registered.join(), String)).toMatch(problem);
});
