import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
import { listed } from '../harness/listed';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { showsPhase } from '../harness/scenario';
import { temporaryFolder } from '../harness/temporary-folder';
import type { WorkerProcess } from '../harness/worker-process';

const PROMPT = 'Mention the harbour in the first line.';

let environment: ProcessEnvironment;
let worker: WorkerProcess;
const keyFile = path.join(temporaryFolder(), 'key');
let metricsAddress: string;
/** Every key that the worker has had. */
const keys: string[] = [];

/** Puts a key into the worker's file, as an operator does who rotates it. */
async function rotate(key: string): Promise<void> {
  keys.push(key);
  await writeFile(keyFile, `${key}\n`);
}

beforeAll(async () => {
  const [port = 0] = await freePorts(1);
  metricsAddress = `127.0.0.1:${port}`;
  environment = await ProcessEnvironment.open({
    env: {
      AGENT_API_KEY: '',
      AGENT_API_KEY_FILE: keyFile,
      FOLLOW_UP_METRICS_ADDRESS: metricsAddress,
      // Everything that the worker could ever say.
      LOG_LEVEL: 'trace',
    },
  });
  await rotate(environment.sandbox.createKey());
  worker = await environment.startWorker();
});
afterAll(async () => {
  await environment.close();
});

// Proves K1.
it('a key that expires in the watch is visible, and a new one in its file heals the watch without a restart', async () => {
  const following = await environment.follow(ENDLESS, { ...PATIENT, prompt: PROMPT });
  await following.progressWhen(({ polls }) => polls > 0);
  environment.sandbox.expireKeys();
  const progress = await following.progressWhen(({ phase }) => phase === 'unauthorized');
  expect(progress.lastAnswer).toMatch(/^http 401: the key is expired or wrong/);
  // As an operator finds it in a list.
  await showsPhase(following, 'unauthorized');

  await rotate(environment.sandbox.createKey());
  await following.progressWhen(({ phase }) => phase === 'watching');
  following.changeJob({ status: 'completed' });
  const { followUp } = await following.result();
  expect(followUp).toMatchObject({ delivery: BY_RESPONSE, observed: { 'http 401': expect.any(Number) } });
  expect(following.processed()).toEqual([true]);
});

// Proves K1.
it('a key that may not write is rejected on the send, with both likely causes named', async () => {
  await rotate(environment.sandbox.createKey('read-only'));
  const following = await environment.follow({}, { ...PATIENT, prompt: PROMPT });
  const { type, message, details } = await following.failure();
  expect(type).toBe('FollowUpRejected');
  expect(message).toContain('the key may read but not write, or this address is not allowed');
  expect(details).toMatchObject({ httpStatus: 403, serviceMessage: 'this API key may only read' });
  expect(following.processed()).toEqual([false]);
});

// Proves K2.
it('no key is in any history, log line, metric, process argument or variable', async () => {
  const histories: unknown[] = [];
  const { workflow } = environment.client;
  const query = `TaskQueue = '${environment.taskQueue}'`;
  for (const workflowId of await listed(workflow.list({ query }))) {
    const handle = workflow.getHandle(workflowId);
    histories.push(await handle.fetchHistory(), (await handle.describe()).raw);
  }
  const proc = (file: string) => readFile(`/proc/${worker.pid}/${file}`, 'utf8');
  /** Each with what must be there, so that the search is known to look at the right text. */
  const places = [
    [texts(histories).join('\n'), PROMPT],
    [worker.stdout + worker.stderr, 'follow-up is unauthorized'],
    [await (await fetch(`http://${metricsAddress}/metrics`)).text(), 'temporal_'],
    [await proc('cmdline'), 'worker.js'],
    [await proc('environ'), 'AGENT_API_KEY_FILE'],
  ] as const;
  expect(keys).toHaveLength(3);
  for (const [text, within] of places) {
    expect(text).toContain(within);
    const isThere = (key: string) => text.includes(key) || text.includes(Buffer.from(key).toString('base64'));
    expect({ within, shown: keys.filter(isThere).length }).toEqual({ within, shown: 0 });
  }
});

/** Every text within a value, also where it is in the bytes of a payload. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [name, ...texts(each)]);
}
