import path from 'node:path';
import { expect, it } from '@jest/globals';
import { FollowUpClient, hasCode } from '../../src/entries/client';
import { eventually } from '../../tools/lib/eventually';
import { Program } from '../harness/program';
import { RestartableServer } from '../harness/restartable-server';
import { ROOT } from '../harness/worker-process';

/**
 * A caller in a separate process. After the signal SIGUSR2, the caller starts calls, waits until the client waits for retries, and aborts
 * the calls. Then the caller reports its pending timers, closes everything, and ends only when nothing keeps the process running.
 */
const CALLER = `
const { Client, Connection } = require('@temporalio/client');
const { FollowUpClient } = require('./dist/entries/client');
const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
async function main([kind, address]) {
  const own = kind === 'own' && (await Connection.connect({ address }));
  const followUps = own
    ? new FollowUpClient(new Client({ connection: own }))
    : await FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address } });
  const handle = followUps.getHandle('follow-up:a:b:c');
  const first = await handle.describe().catch((error) => error);
  console.log(first.code);
  const waiting = setInterval(() => undefined, 1_000);
  await new Promise((resolve) => process.once('SIGUSR2', resolve));
  clearInterval(waiting);
  const caller = new AbortController();
  const { signal } = caller;
  const batch = followUps.batches.getHandle('b');
  const request = { projectId: 'a', jobId: 'b', requestId: 'd', prompt: 'Hello' };
  const before = timers();
  const calls = [
    ...['result', 'describe', 'progress', 'cancel', 'retry', 'pollNow'].map((name) => handle[name]({ signal })),
    ...['result', 'progress', 'retry'].map((name) => batch[name]({ signal })),
    followUps.start(request, { signal }),
    followUps.list({}, { signal })[Symbol.asyncIterator]().next(),
    batch.watch({ signal }).next(),
  ].map((call) => call.then(() => 'no error', (error) => error.name));
  // Each call waits for its next retry.
  while (timers() < before + calls.length) await new Promise(setImmediate);
  caller.abort();
  console.log([...new Set(await Promise.all(calls))].join());
  // gRPC removes the timers of cancelled requests some turns later.
  for (let turn = 0; turn < 100 && timers() > before; turn += 1) await new Promise(setImmediate);
  console.log('timers', timers() - before);
  const pending = followUps.getHandle('follow-up:a:b:e').result().catch((error) => error);
  while (timers() === before) await new Promise(setImmediate);
  await followUps.close();
  if (own) await own.close();
  console.log((await pending).code);
}
void main(process.argv.slice(1));
`;

// Proves T9.
it('a lost Temporal server leaves no timer and no error behind after calls are aborted and closed, and a lazy client connects after the return of the server', async () => {
  await RestartableServer.with(async (server) => {
    const callers = ['own', 'connect'].map(
      (kind) => new Program(process.execPath, ['-e', CALLER, kind, server.address], { cwd: ROOT }),
    );
    try {
      for (const caller of callers) await caller.waitForOutput(/NOT_FOUND/);
      await server.kill();
      for (const caller of callers) caller.signal('SIGUSR2');
      for (const caller of callers)
        expect(await caller.waitForEnd()).toEqual({
          ...{ code: 0, signal: null, stderr: '' },
          stdout: 'NOT_FOUND\nAbortError\ntimers 0\nCLIENT_CLOSED\n',
        });
    } finally {
      for (const caller of callers) caller.signal('SIGKILL');
    }
    const env = {
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_CONFIG_FILE: path.join(ROOT, '.cache/no-profile.toml'),
    };
    const connecting = FollowUpClient.connect({ env, timeout: 500 }).catch((error: unknown) => error);
    expect(hasCode(await connecting, 'UNREACHABLE')).toBe(true);
    const lazy = await FollowUpClient.connect({ env, lazy: true });
    try {
      const describe = () => lazy.getHandle('follow-up:a:b:c').describe();
      await expect(lazy.getHandle('x').describe({ timeout: 200 })).rejects.toMatchObject({
        code: 'WAIT_TIMEOUT',
      });
      const described = eventually(
        'a call reaches the server',
        () => describe().catch((error: unknown) => error),
        {
          until: (error) => hasCode(error, 'NOT_FOUND'),
        },
      );
      await server.restart();
      expect(await described).toMatchObject({ code: 'NOT_FOUND' });
    } finally {
      await lazy.close();
    }
  });
});
