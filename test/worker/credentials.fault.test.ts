import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { scrape } from '../../tools/lib/scrape';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../harness/follow-up-under-test';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from '../harness/process-environment';
import { waitForPhase } from '../harness/scenario';
import { temporaryFolder } from '../harness/temporary-folder';

const AGENT_API_KEY_FILE = path.join(temporaryFolder(), 'key');
const PROBLEMS = 'agent_follow_up_secret_file_problems_total';
const PROMPT = 'Mention the harbour in the first line.';

/** Replaces the file in one step. A worker that reads the file during `writeFile` may find it empty. */
async function replaceKeyFile(text: string): Promise<void> {
  await writeFile(`${AGENT_API_KEY_FILE}.new`, text);
  await rename(`${AGENT_API_KEY_FILE}.new`, AGENT_API_KEY_FILE);
}

// Proves K1, K2, K5.
it('an expired key is visible; after its rotation, sends and watches continue without a restart; a read-only key is rejected; no key appears in a history, log, metric or process argument', async () => {
  const port = await freePort();
  const FOLLOW_UP_METRICS_ADDRESS = `127.0.0.1:${port}`;
  // With the log level `trace`, the worker writes all of its log lines.
  const workerEnv = { AGENT_API_KEY: '', AGENT_API_KEY_FILE, FOLLOW_UP_METRICS_ADDRESS, LOG_LEVEL: 'trace' };
  await ProcessEnvironment.with({ env: workerEnv }, async (environment) => {
    const keys: string[] = [];
    const rotate = (...access: Parameters<typeof environment.sandbox.createKey>) => {
      keys.push(environment.sandbox.createKey(...access));
      return replaceKeyFile(`${keys.at(-1)}\n`);
    };
    await rotate();
    const worker = await environment.startWorker();
    const following = await environment.follow(ENDLESS_TURN, { ...WORKER_LOSS_OPTIONS, prompt: PROMPT });
    await following.waitForProgress(({ polls }) => polls > 0);
    environment.sandbox.expireKeys();
    const progress = await following.waitForProgress(({ phase }) => phase === 'unauthorized');
    expect(progress.lastResponse).toMatch(/^http 401: the key is expired or wrong/);
    // The search attribute has the phase too, so that an operator finds the follow-up in a list.
    await waitForPhase(following, 'unauthorized');
    await rotate();
    await following.waitForProgress(({ phase }) => phase === 'watching');
    // A rotation that fails is logged and counted once. The last valid key stays in use.
    await replaceKeyFile('two keys');
    const { msg } = await worker.waitForLog(
      /^the file of AGENT_API_KEY_FILE can't be used: it must contain only/,
    );
    expect(msg).toContain('The last valid secret stays in use');
    await rotate();
    await worker.waitForLog(/^the file of AGENT_API_KEY_FILE can be used again/);
    const problems = (await scrape(FOLLOW_UP_METRICS_ADDRESS)).filter(({ name }) => name === PROBLEMS);
    const counts = problems.map(({ labels, value }) => [labels.variable, value]);
    expect(new Map(counts as [string, number][])).toEqual(
      new Map([
        ['AGENT_API_KEY_FILE', 1],
        ['FOLLOW_UP_NOTIFY_SECRET_FILE', 0],
      ]),
    );

    following.changeJob({ status: 'completed' });
    const { receipt } = await following.result();
    expect(receipt).toMatchObject({
      delivery: ACCEPTED_BY_RESPONSE,
      responseCounts: { http_401: expect.any(Number) },
    });
    expect(following.processedFlags()).toEqual([true]);

    // The rotation is late: a follow-up that starts in the meantime waits, and sends once the key is valid.
    environment.sandbox.expireKeys();
    const early = await environment.follow({}, { ...WORKER_LOSS_OPTIONS, prompt: PROMPT });
    await early.waitForProgress(({ phase, nextPollAt }) => phase === 'unauthorized' && nextPollAt !== null);
    await waitForPhase(early, 'unauthorized');
    expect(early.posts()).toEqual([]);
    await rotate();
    expect(await early.outcomeSummary()).toMatchObject({
      status: 'completed',
      delivery: ACCEPTED_BY_RESPONSE,
      posts: [true],
    });

    await rotate('read-only');
    const rejected = await environment.follow({}, { ...WORKER_LOSS_OPTIONS, prompt: PROMPT });
    const { type, message, details } = await rejected.failure();
    expect(type).toBe('FollowUpRejected');
    expect(message).toContain('the key may read but not write, or the agent service does not allow');
    expect(details).toMatchObject({ httpStatus: 403, serviceMessage: 'this API key may only read' });
    expect(rejected.processedFlags()).toEqual([false]);

    const histories: unknown[] = [];
    const { workflow } = environment.client;
    const query = `TaskQueue = '${environment.taskQueue}'`;
    for (const workflowId of await collectWorkflowIds(workflow.list({ query }))) {
      const handle = workflow.getHandle(workflowId);
      histories.push(await handle.fetchHistory(), (await handle.describe()).raw);
    }
    const proc = (file: string) => readFile(`/proc/${worker.pid}/${file}`, 'utf8');
    /** Each text to search, with a text that it must contain, so that the test fails if it searches the wrong text. */
    const places = [
      [texts(histories).join('\n'), PROMPT],
      [worker.stdout + worker.stderr, 'follow-up is unauthorized'],
      [await (await fetch(`http://${FOLLOW_UP_METRICS_ADDRESS}/metrics`)).text(), 'temporal_'],
      [await proc('cmdline'), 'worker.js'],
      [await proc('environ'), 'AGENT_API_KEY_FILE'],
    ] as const;
    for (const [text, expected] of places) {
      expect(text).toContain(expected);
      for (const key of [...keys, ...keys.map((each) => Buffer.from(each).toString('base64'))])
        expect({ expected, hasKey: text.includes(key) }).toEqual({ expected, hasKey: false });
    }
  });
});

/** Returns every text in a value, including the bytes of payloads. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [name, ...texts(each)]);
}
