import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { BatchOfTest, REJECTED_ONCE } from '../../harness/batch-of-test';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';
import { temporaryFolder } from '../../harness/temporary-folder';
import { csv, jsonl, jsonLines } from './batch-file';
import { SWIFT_FLAGS, starter } from './starter';
import type { Ended } from '../command';

const { open } = sharedEnvironment();
const folder = temporaryFolder();

const FAILS = { turn: { outcome: 'failed', reads: 2 } } as const;

/** A batch and the words that run it from stdin. */
async function newBatch() {
  const environment = await open();
  const batch = new BatchOfTest(environment);
  const start = ['batch', 'run', '-', '--batch-id', batch.batchId, ...SWIFT_FLAGS];
  const run = (...more: string[]): Promise<Ended> => starter(environment, [...start, ...more], jsonl(batch));
  const command = (name: string, ...more: string[]): Promise<Ended> =>
    starter(environment, ['batch', name, batch.batchId, ...more]);
  return { environment, batch, start, run, command };
}

describe('batch run', () => {
  it.concurrent('sends each line of a CSV file once, and tells how each has ended', async () => {
    const { environment, batch, start, command } = await newBatch();
    batch.addMany(3);
    batch.add(FAILS);
    batch.add({}, { prompt: 'Fix "it",\nand test. 日本語' });
    batch.again({ projectId: batch.projectId, jobId: 'nobody' });
    const name = path.join(folder, 'nightly.csv');
    await writeFile(name, csv(batch));
    const words = start.map((word) => (word === '-' ? name : word));
    const { code, stdout, stderr } = await starter(environment, words);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    for (const line of [
      /^state +done$/m,
      /^settled +6 of 6$/m,
      /^status +(completed × 4, failed × 1|failed × 1, completed × 4)$/m,
      /^first failures\n[^]*^ {2}follow-up:project-.* failed$/m,
    ])
      expect(stdout).toMatch(line);
    const page = `http://ui.example/namespaces/default/workflows/follow-up-batch%3A${batch.batchId}`;
    expect(stderr).toContain(`batch       ${batch.batchId} (6 items)`);
    expect(stderr).toContain(page);
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ \d of 6 · \d+ %/m);
    expect(stderr).toMatch(/^[-\dT]+:\d\d:\d\dZ {2}failed +accepted {2}project-batch-\w+\//m);
    const sent = batch.posts().map(({ jobId, prompt }) => [jobId, prompt?.text]);
    const asked = batch.requests.slice(0, 5).map(({ jobId, prompt }) => [jobId, prompt]);
    expect(sent.sort()).toEqual(asked.sort());
    const json = await command('results', '--json');
    const lines = jsonLines(json.stdout);
    const items = lines.slice(0, -1);
    expect(new Set(items.map(({ workflowId }) => workflowId)).size).toBe(6);
    const times = items.map(({ settledAt = '' }) => settledAt);
    expect(times).toEqual(times.toSorted());
    const summary = { items: 6, settled: 6, byFailure: { JobNotFound: 1 } };
    expect(lines.at(-1)).toMatchObject({ batchId: batch.batchId, state: 'done', message: null, summary });
    expect((await command('watch', '--json')).stdout).toBe(json.stdout);
    const text = await command('results');
    expect(text.stdout.split('\n').slice(0, -1)).toHaveLength(6);
    expect(text.stdout).toMatch(/JobNotFound +not-sent +[-\w]+\/nobody +The service knows no such job/);
    expect(text.stderr).toContain('6 of 6 settled; the batch is done');
  });

  it.concurrent('sends nothing if any line is wrong', async () => {
    const { environment, batch, start, command } = await newBatch();
    batch.addMany(9);
    const input = `${jsonl(batch)}{"project": "p"`;
    const { code, stdout, stderr } = await starter(environment, [...start, '--json'], input);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^error: line 10: is not JSON/),
    });
    expect(JSON.parse(stdout)).toMatchObject({ type: 'InvalidRequest' });
    expect((await command('status')).code).toBe(2);
  });

  // Proves B8.
  it.concurrent('ends with 30 beyond its tolerance; run again with a higher one it goes on', async () => {
    const { batch, run, command } = await newBatch();
    batch.addMany(4, FAILS);
    const first = await run('--concurrency', '1', '--tolerate', '25%');
    const exceeded =
      /^state +tolerance-exceeded\nwhy +\d+ items failed, more than the tolerance[^]*^settled +2 of 4$/m;
    expect(first).toMatchObject({ code: 30, stdout: expect.stringMatching(exceeded) });
    const why = expect.stringMatching(/^why .*starts nothing unless its tolerance is raised/m);
    expect(await command('status')).toMatchObject({ code: 30, stdout: why });
    const second = await run('--concurrency', '4', '--tolerate', '100%');
    expect(second).toMatchObject({ code: 0, stdout: expect.stringMatching(/^settled +4 of 4$/m) });
    expect(second.stderr).toContain('resumed     it had failed; what may have arrived is not sent again');
    expect(batch.posts()).toHaveLength(4);
  });

  it.concurrent('attaches to a batch that runs, and to one that is done; nothing is sent again', async () => {
    const { environment, batch, start } = await newBatch();
    batch.addMany(3, ENDLESS);
    // Without a name of its own it is found by its items.
    const words = start.filter((word) => word !== '--batch-id' && word !== batch.batchId);
    const first = await starter(environment, [...words, '--no-wait'], jsonl(batch));
    expect(first.code).toBe(0);
    const [batchId = ''] = first.stdout.split('\n');
    expect(first.stderr).toContain(`npm run starter -- batch watch ${batchId}`);
    await batch.sent(3);
    const attached = await starter(environment, [...words, '--no-wait'], jsonl(batch));
    expect(attached).toMatchObject({ code: 0, stdout: first.stdout });
    expect(attached.stderr).toContain('attached    this batch is running');
    const watched = starter(environment, ['batch', 'watch', batchId, '--json']);
    batch.endTurns();
    expect(jsonLines((await watched).stdout).slice(0, -1)).toHaveLength(3);
    const done = expect.stringContaining(`already run as ${batchId}; give --batch-id to send it once more`);
    expect(await starter(environment, words, jsonl(batch))).toMatchObject({ code: 0, stderr: done });
    expect(batch.posts()).toHaveLength(3);
  });
});

describe('a running batch', () => {
  it.concurrent('is paused, resumed and given other places, each with where it stands then', async () => {
    const { batch, run, command } = await newBatch();
    batch.addMany(4, ENDLESS);
    await run('--concurrency', '1', '--no-wait');
    await batch.sent(1);
    expect((await command('pause')).stdout).toMatch(/^state +paused$/m);
    batch.endTurns();
    await batch.progressWhen(({ open: running, settled }) => running === 0 && settled === 1);
    const summary = { items: 4, open: 0, concurrency: 1 };
    const status = JSON.parse((await command('status', '--json')).stdout) as object;
    expect(status).toMatchObject({ batchId: batch.batchId, state: 'paused', summary });
    expect(batch.posts()).toHaveLength(1);
    expect(JSON.parse((await command('resume', '--json')).stdout)).toMatchObject({ state: 'running' });
    expect((await command('concurrency', '4')).stdout).toMatch(/^open +\d \(concurrency 4\)$/m);
    await batch.sent(4);
    expect((await command('retry')).stderr).toContain('is still running');
    batch.endTurns();
    const settled = expect.stringMatching(/^settled +4 of 4$/m);
    expect(await command('watch')).toMatchObject({ code: 0, stdout: settled });
    const ended = expect.stringContaining('has already ended: completed');
    expect(await command('pause')).toMatchObject({ code: 1, stderr: ended });
  });

  // Proves B10.
  it.concurrent('ends by cancel, with what is open only if told to; its exit code is 24', async () => {
    const running = async () => {
      const made = await newBatch();
      made.batch.addMany(3, ENDLESS);
      await made.run('--concurrency', '2', '--no-wait');
      await made.batch.sent(2);
      return made;
    };
    const { batch, command } = await running();
    const cancelled = await command('cancel');
    expect(cancelled).toMatchObject({ code: 0, stdout: expect.stringMatching(/^state +cancelled$/m) });
    expect(cancelled.stderr).toContain(`npm run starter -- list --batch ${batch.batchId}`);
    expect((await command('cancel')).stderr).toContain('already cancelled');
    expect(await command('watch')).toMatchObject({ code: 24 });
    const all = await (await running()).command('cancel', '--cancel-running', '--json');
    const end = { state: 'cancelled', summary: { settled: 2, byFailure: { cancelled: 2 } } };
    expect(JSON.parse(all.stdout)).toMatchObject({ end });
  });
});

// Proves B9.
it.concurrent('retry sends what was rejected, and says when nothing is left', async () => {
  const { batch, run, command } = await newBatch();
  batch.add({}, {}, REJECTED_ONCE);
  batch.add({}, {}, { name: 'reset', operation: 'message', times: 1 });
  expect((await run()).code).toBe(0);
  const retried = await command('retry', '--json');
  expect(retried).toMatchObject({ code: 0, stderr: expect.stringContaining('it was completed') });
  const summary = { settled: 2, byStatus: { completed: 1 }, byFailure: { DeliveryUnknown: 1 } };
  expect(jsonLines(retried.stdout).at(-1)).toMatchObject({ state: 'done', summary });
  const again = await command('retry', '--no-wait', '--json');
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing to retry') });
  expect(again.stderr).toContain('--include-unknown also sends items');
  expect(JSON.parse(again.stdout)).toEqual({ batchId: batch.batchId, attached: 'ended' });
});

it('a batch of nothing is an error of usage, for every command that takes one', async () => {
  const environment = await open();
  const stderr = expect.stringContaining('There is no batch "no-such-batch"');
  for (const name of ['status', 'watch', 'results', 'pause', 'resume', 'cancel', 'retry'])
    expect(await starter(environment, ['batch', name, 'no-such-batch'])).toMatchObject({ code: 2, stderr });
});
