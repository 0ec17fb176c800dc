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

/** The connection of a service that refuses operator calls, as Temporal Cloud does. */
function withoutOperator(keys: Readonly<Record<string, number>>): ConnectionLike {
  const error = { code: 7, details: 'Request unauthorized.', metadata: {} };
  const refuse = () => Promise.reject(Object.assign(new Error('7 PERMISSION_DENIED'), error));
  return {
    operatorService: { listSearchAttributes: refuse, addSearchAttributes: refuse },
    workflowService: { getSearchAttributes: () => Promise.resolve({ keys }) },
    withDeadline: (_: unknown, call: () => unknown) => call(),
    withMetadata: (_: unknown, call: () => unknown) => call(),
  } as unknown as ConnectionLike;
}

describe('a namespace that is not set up', () => {
  it('refuses a start with what to run, and nothing is started', async () => {
    const followUps = new FollowUpClient(new Client({ connection }));
    const error: unknown = await followUps.start(ASKED).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SearchAttributesError);
    expect((error as Error).message).toMatch(
      /Nothing was started.*"setup".*temporal operator search-attribute create/s,
    );
    await expect(listed(followUps.list({ projectId: 'p' }))).rejects.toThrow(SearchAttributesError);
  });

  it('gets what is missing, once, by any number of callers, and works at once', async () => {
    const searchAttributes = Object.fromEntries([['AgentJob', KEYWORD]]);
    await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
    const both = await Promise.all([
      ensureSearchAttributes(connection, 'default'),
      ensureSearchAttributes(connection, 'default'),
    ]);
    for (const { registered, present } of both) {
      expect([...registered, ...present].sort()).toEqual([...SEARCH_ATTRIBUTES].sort());
    }
    expect(await ensureSearchAttributes(connection, 'default')).toEqual({
      registered: [],
      present: [...SEARCH_ATTRIBUTES],
    });
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

describe('where the operator service is refused', () => {
  const keysOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, KEYWORD]));

  it('attributes that are there are enough', async () => {
    const found = { registered: [], present: [...SEARCH_ATTRIBUTES] };
    expect(await ensureSearchAttributes(withoutOperator(keysOf(SEARCH_ATTRIBUTES)), 'n')).toEqual(found);
  });

  it.each([
    [
      'missing is asked for with the exact commands',
      keysOf(SEARCH_ATTRIBUTES.filter((name) => name !== 'AgentJob')),
      /lacks the search attributes AgentJob.*\n {2}temporal operator search-attribute create --namespace n --name AgentJob --type Keyword\n.*tcld/,
    ],
    ['of another type is named', { AgentJob: INT }, /whose type is not Keyword: AgentJob/],
  ])('one that is %s', async (_, keys, words) => {
    await expect(ensureSearchAttributes(withoutOperator(keys), 'n')).rejects.toThrow(words);
  });
});
