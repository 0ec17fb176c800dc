import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../src/dev/dev-server';
import type { FollowUpResult } from '../../src/contract/result';
import { eventually } from '../harness/eventually';
import type { Following } from '../harness/following';
import { PATIENT, ProcessHouse } from '../harness/process-house';
import { temporal } from '../harness/temporal';

/** Two starts of a server on a file, one of a worker, and the back-off of everybody's gRPC; some 20 s on two cores. */
const LIMIT_MS = 120_000;

const ENDLESS = { turn: { durationMs: null } } as const;
const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };

interface Scene {
  readonly house: ProcessHouse;
  readonly kill: () => Promise<void>;
  /** Starts the server again on the same file and port. */
  readonly restart: () => Promise<void>;
}

/** A server on a SQLite file, and a worker. */
async function onFile(env: NodeJS.ProcessEnv, test: (scene: Scene) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'server-restart-'));
  const databaseFile = path.join(folder, 'temporal.db');
  const options = { cli: temporal().cli, databaseFile, searchAttributes: true };
  let server: DevServer | undefined;
  try {
    const { port, address } = (server = await startDevServer(options));
    const kill = async () => {
      server?.kill();
      await server?.exited;
    };
    const restart = async () => {
      server = await startDevServer({ ...options, port });
    };
    await ProcessHouse.with({ address, env }, async (house) => {
      await house.startWorker();
      await test({ house, kill, restart });
    });
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The result, through a connection that finds the server again. */
async function result(following: Following): Promise<FollowUpResult> {
  const ask = async (): Promise<{ result: FollowUpResult } | { error: unknown } | undefined> => {
    try {
      return { result: await following.result() };
    } catch (error) {
      return /UNAVAILABLE|ECONNREFUSED|Unable to get/.test(String(error)) ? undefined : { error };
    }
  };
  const ended = await eventually('the server tells the result', ask, { timeoutMs: 60_000, intervalMs: 200 });
  if ('error' in ended) throw ended.error;
  return ended.result;
}

describe('a Temporal server that is killed and comes back', () => {
  it.concurrent(
    'in the watch: the watch goes on, and the message is not sent again',
    () =>
      onFile({}, async ({ house, kill, restart }) => {
        const following = await house.follow(ENDLESS, PATIENT);
        const before = await following.progressWhen(({ polls }) => polls > 1);
        await kill();
        await restart();
        const { journal } = house.sandbox;
        const seen = journal.entries({ operation: 'get' }).length;
        await journal.waitFor({ operation: 'get' }, { atLeast: seen + 2, timeoutMs: 60_000 });
        house.sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/3' });
        const { prLink, followUp } = await result(following);
        expect(prLink).toBe('https://code.test/pull/3');
        expect(followUp).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
        expect(followUp.polls).toBeGreaterThan(before.polls);
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'while the POST is held and answered: the worker reports the answer later, and the message is not sent again',
    () =>
      // The server waits for 45 s for the report: longer than it is away.
      onFile({ AGENT_API_TIMEOUT: '30s' }, async ({ house, kill, restart }) => {
        house.sandbox.setFault({ name: 'hold', operation: 'message', times: 1 });
        const following = await house.follow(ENDLESS, PATIENT);
        const { journal } = house.sandbox;
        await journal.waitFor({ fault: 'hold' }, { timeoutMs: 30_000 });
        await kill();
        house.sandbox.release();
        await journal.waitFor({ operation: 'message', ending: 'answered' });
        await restart();
        await journal.waitFor({ operation: 'get' }, { atLeast: 3, timeoutMs: 60_000 });
        house.sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/4' });
        const { prLink, followUp } = await result(following);
        expect(prLink).toBe('https://code.test/pull/4');
        expect(followUp).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );
});
