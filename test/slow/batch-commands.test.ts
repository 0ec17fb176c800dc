import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sharedEnvironment } from '../harness/shared-environment';
import { BatchFile, jsonLines } from '../client/commands/batch-file';
import { type Ended, QUICK_FLAGS, starter } from '../client/commands/starter';

const open = sharedEnvironment();

/** A batch and the words that run it from stdin. */
async function batch() {
  const environment = await open();
  const file = new BatchFile(environment);
  const start = ['batch', 'run', '-', '--batch-id', file.batchId, ...QUICK_FLAGS, '--deadline', '60s'];
  const run = (...more: string[]): Promise<Ended> => starter(environment, [...start, ...more], file.jsonl);
  const command = (name: string, ...more: string[]): Promise<Ended> =>
    starter(environment, ['batch', name, file.batchId, ...more]);
  return { environment, file, start, run, command };
}

describe('batch run', () => {
  it.concurrent('sends each line of a CSV file once, and its summary is the result', async () => {
    const { environment, file, start } = await batch();
    file.addMany(3);
    file.add({ durationMs: 300, outcome: 'failed' });
    file.add({ durationMs: 300 }, 'Fix "it",\nand test. 日本語');
    const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-batch-'));
    const name = path.join(folder, 'nightly.csv');
    await writeFile(name, file.csv);
    const { code, stdout, stderr } = await starter(
      environment,
      start.map((word) => (word === '-' ? name : word)),
    ).finally(() => rm(folder, { recursive: true }));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^state +done$/m);
    expect(stdout).toMatch(/^settled +5 of 5$/m);
    expect(stdout).toMatch(/^status +completed × 4, failed × 1$|^status +failed × 1, completed × 4$/m);
    expect(stdout).toMatch(/^first failures\n {2}follow-up:batch-.* failed$/m);
    expect(stderr).toContain(`batch       ${file.batchId} (5 items)`);
    expect(stderr).toContain(
      `http://ui.example/namespaces/default/workflows/follow-up-batch%3A${file.batchId}`,
    );
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ [█░]{20} \d of 5 · \d+ %/m);
    expect(stderr).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\dZ failed {2}${file.batchId}/`, 'm'));
    const sent = file.posts().map(({ jobId, prompt }) => [jobId, prompt?.text]);
    expect(sent.sort()).toEqual(file.lines.map(({ job, prompt }) => [job, prompt]).sort());
  });

  it.concurrent('with --json prints a line for each item as it settles, and the summary last', async () => {
    const { file, run, command } = await batch();
    file.add({ durationMs: 2_000 });
    file.addMany(4);
    file.addNobody();
    const { code, stdout } = await run('--json');
    expect(code).toBe(0);
    const lines = jsonLines(stdout);
    const items = lines.slice(0, -1);
    expect(new Set(items.map(({ workflowId }) => workflowId)).size).toBe(6);
    const times = items.map(({ settledAt = '' }) => settledAt);
    expect(times).toEqual(times.toSorted());
    expect(lines.at(-1)).toMatchObject({
      batchId: file.batchId,
      state: 'done',
      message: null,
      summary: { items: 6, settled: 6, byStatus: { completed: 5 }, byFailure: { JobNotFound: 1 } },
    });
    // They can be had again, then by themselves.
    expect((await command('results', '--json')).stdout).toBe(stdout);
    const text = await command('results');
    expect(text.stdout.split('\n').slice(0, -1)).toHaveLength(6);
    expect(text.stdout).toMatch(/JobNotFound +not-sent +batch-\w+\/nobody +The service knows no such job/);
    expect(text.stderr).toContain('6 of 6 settled; the batch is done');
  });

  it.concurrent('takes from the flags what lines leave out', async () => {
    const { environment, file, start } = await batch();
    const { projectId, jobId } = file.add();
    const words = [...start, '--project', projectId, '--prompt', 'From the flag.'];
    expect((await starter(environment, words, `job\n${jobId}\n`)).code).toBe(0);
    expect(file.posts().map(({ prompt }) => prompt?.text)).toEqual(['From the flag.']);
  });

  it.concurrent('sends nothing if any line is wrong, and tells every one with its number', async () => {
    const { environment, file, start, command } = await batch();
    file.addMany(9);
    const lines = file.jsonl.split('\n').slice(0, -1);
    const bad = JSON.stringify({ project: '..', job: 'j', prompt: '' });
    const words = [...start, '--json'];
    const { code, stdout, stderr } = await starter(
      environment,
      words,
      [...lines, bad, '{"project": "p"'].join('\n'),
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(/^ {2}line 10: project: /m);
    expect(stderr).toMatch(/^ {2}line 10: prompt: /m);
    expect(stderr).toMatch(/^ {2}line 11: is not JSON/m);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'InvalidRequest' });
    expect(file.posts()).toEqual([]);
    expect((await command('status')).code).toBe(2);
  });

  it.concurrent.each([
    [['--concurrency', '0', '--tolerate', 'x'], /--concurrency: must be[^]*--tolerate: must be/],
    [['--polling-initial', '5'], /--polling-initial: "5" needs a unit/],
    [['--format', 'xml'], /--format: must be jsonl or csv/],
    [['--prompt-file', '-'], /--prompt-file: stdin can be read only once/],
    [['--batch-id', ''], /--batch-id: must not be empty/],
  ])('refuses %j before anything is started', async (words, problem) => {
    const { file, run } = await batch();
    file.add();
    const { code, stderr } = await run(...words);
    expect(code).toBe(2);
    expect(stderr).toMatch(problem);
    expect(file.posts()).toEqual([]);
  });

  it.concurrent(
    'ends with 30 beyond its tolerance; run again it goes on with a higher one only',
    async () => {
      const { file, run, command } = await batch();
      file.addMany(4, { durationMs: 300, outcome: 'failed' });
      const first = await run('--concurrency', '1', '--tolerate', '25%');
      expect(first.code).toBe(30);
      expect(first.stderr).toMatch(/^tolerance-exceeded: More items failed than the tolerance allows: 2\./m);
      expect(first.stdout).toMatch(/^settled +2 of 4$/m);
      expect(file.posts()).toHaveLength(2);
      expect((await command('status')).code).toBe(30);
      const asBefore = await run('--concurrency', '4');
      expect(asBefore).toMatchObject({ code: 30, stdout: expect.stringMatching(/^settled +2 of 4$/m) });
      const second = await run('--concurrency', '4', '--tolerate', '100%');
      expect(second).toMatchObject({ code: 0, stdout: expect.stringMatching(/^settled +4 of 4$/m) });
      expect(second.stderr).toContain('resumed     it was failed; what has been sent is not sent again');
      expect(file.posts()).toHaveLength(4);
    },
  );

  it.concurrent('attaches to a batch that runs, and to one that is done; nothing is sent again', async () => {
    const { environment, file, start } = await batch();
    file.addMany(3, null);
    // Without a name of its own it is found by its items.
    const words = start.filter((word) => word !== '--batch-id' && word !== file.batchId);
    const first = await starter(environment, [...words, '--no-wait'], file.jsonl);
    expect(first.code).toBe(0);
    const [batchId = ''] = first.stdout.split('\n');
    expect(first.stderr).toContain(`npm run starter -- batch watch ${batchId}`);
    await file.sent(3);
    const attached = await starter(environment, [...words, '--concurrency', '7', '--no-wait'], file.jsonl);
    expect(attached).toMatchObject({ code: 0, stdout: first.stdout });
    expect(attached.stderr).toContain('attached    this batch is running');
    expect(attached.stderr).toContain(`batch concurrency ${batchId} 7 changes the first`);
    const watched = starter(environment, ['batch', 'watch', batchId, '--json']);
    file.endTurns();
    expect(jsonLines((await watched).stdout).slice(0, -1)).toHaveLength(3);
    const again = await starter(environment, words, file.jsonl);
    expect(again.code).toBe(0);
    expect(again.stderr).toContain(`already run as ${batchId}; give --batch-id to send it once more`);
    expect(file.posts()).toHaveLength(3);
    const once = [...words, '--batch-id', `${file.batchId}-more`, '--no-wait'];
    expect((await starter(environment, once, file.jsonl)).code).toBe(0);
    await file.sent(6);
    file.endTurns();
  });

  it.concurrent('of the same name with other options is refused', async () => {
    const { file, run } = await batch();
    file.add();
    await run('--no-wait');
    const { code, stderr } = await run('--when-active', 'wait');
    expect(code).toBe(2);
    expect(stderr).toMatch(/exists with different items, options or order.*--batch-id/);
  });
});

describe('a running batch', () => {
  it.concurrent('is paused, resumed and given other places, each with where it stands then', async () => {
    const { file, run, command } = await batch();
    file.addMany(4, null);
    await run('--concurrency', '1', '--no-wait');
    await file.sent(1);
    const paused = await command('pause');
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringMatching(/^state +paused$/m) });
    const status = await command('status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({
      batchId: file.batchId,
      progress: { state: 'paused', items: 4, open: 1, concurrency: 1 },
    });
    expect(JSON.parse((await command('resume', '--json')).stdout)).toMatchObject({ state: 'running' });
    const wider = await command('concurrency', '4');
    expect(wider.stdout).toMatch(/^open +\d \(concurrency 4\)$/m);
    expect(await command('concurrency', '0')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('concurrency: must be a whole number from 1 to 1000'),
    });
    await file.sent(4);
    expect((await command('retry')).stderr).toContain('is still running');
    file.endTurns();
    const watched = await command('watch');
    expect(watched).toMatchObject({ code: 0, stdout: expect.stringMatching(/^settled +4 of 4$/m) });
    expect(await command('pause')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has already ended: completed'),
    });
    expect(file.posts()).toHaveLength(4);
  });

  it.concurrent('ends by cancel and leaves what is open; run again it awaits that and goes on', async () => {
    const { environment, file, run, command } = await batch();
    file.addMany(3, null);
    await run('--concurrency', '2', '--no-wait');
    await file.sent(2);
    const cancelled = await command('cancel');
    expect(cancelled).toMatchObject({ code: 0, stdout: expect.stringMatching(/^state +cancelled$/m) });
    expect(cancelled.stderr).toContain(`npm run starter -- list --batch ${file.batchId}`);
    expect(await command('cancel')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('already cancelled'),
    });
    expect((await command('status')).code).toBe(24);
    expect((await command('watch')).code).toBe(24);
    // Eventually consistent: it is asked again.
    const giveUpAt = Date.now() + 20_000;
    let listed: { state: string }[] = [];
    while (listed.length < 2 && Date.now() < giveUpAt) {
      const { stdout } = await starter(environment, ['list', '--batch', file.batchId, '--json']);
      listed = JSON.parse(stdout) as typeof listed;
    }
    expect(listed.map(({ state }) => state)).toEqual(['running', 'running']);
    const resumed = run('--concurrency', '2');
    file.endTurns();
    await file.sent(3);
    file.endTurns();
    const { code, stdout, stderr } = await resumed;
    expect({ code, stdout, stderr }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^settled +3 of 3$/m),
      stderr: expect.stringContaining('it was cancelled'),
    });
    expect(file.posts()).toHaveLength(3);
  });

  it.concurrent('ends with its open follow-ups by cancel --cancel-running', async () => {
    const { file, run, command } = await batch();
    file.addMany(3, null);
    await run('--concurrency', '2', '--no-wait');
    await file.sent(2);
    const { code, stdout } = await command('cancel', '--cancel-running', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ended: true,
      end: { state: 'cancelled', summary: { items: 3, settled: 2, byFailure: { cancelled: 2 } } },
    });
    const results = jsonLines((await command('results', '--json')).stdout);
    expect(results.map(({ outcome, state }) => outcome ?? state)).toEqual([
      'cancelled',
      'cancelled',
      'cancelled',
    ]);
    expect((await command('cancel')).stderr).toContain('already cancelled');
    expect(file.posts()).toHaveLength(2);
  });

  it.concurrent('without a worker is told by what the server knows', async () => {
    const { environment, file, start } = await batch();
    file.add();
    const idle = { taskQueue: `nobody-${randomUUID()}`, taskQueues: environment.taskQueues };
    await starter(idle, [...start, '--no-wait'], file.jsonl);
    const { code, stdout } = await starter(idle, ['batch', 'status', file.batchId]);
    expect(code).toBe(0);
    expect(stdout).toContain(`no worker answers on task queue ${idle.taskQueue} (yet)`);
    expect(stdout).toMatch(/^follow-ups +none yet$/m);
    const paused = await starter(idle, ['batch', 'pause', file.batchId]);
    expect(paused.code).toBe(1);
    expect(paused.stderr).toContain('did not answer within 2 s: no worker polls the task queue');
  });
});

describe('batch retry', () => {
  it.concurrent(
    'sends what was not sent or rejected, once, and nothing else whatever is typed next',
    async () => {
      const { environment, file, run, command } = await batch();
      file.add();
      const rejected = file.add();
      const lost = file.add();
      const once = { operation: 'message', times: 1 } as const;
      environment.sandbox.setFault({ name: 'status', ...rejected, ...once, parameters: { code: 422 } });
      environment.sandbox.setFault({ name: 'reset', ...lost, ...once });
      expect((await run()).code).toBe(0);
      expect(file.posts()).toHaveLength(3);
      const retried = await command('retry', '--json');
      expect(retried).toMatchObject({ code: 0, stderr: expect.stringContaining('it was completed') });
      const lines = jsonLines(retried.stdout);
      expect(lines.slice(0, -1).find(({ jobId }) => jobId === rejected.jobId)).toMatchObject({
        outcome: 'completed',
      });
      expect(lines.at(-1)).toMatchObject({
        batchId: file.batchId,
        state: 'done',
        summary: { items: 3, settled: 3, byStatus: { completed: 2 }, byFailure: { DeliveryUnknown: 1 } },
      });
      expect(file.posts()).toHaveLength(4);
      const again = await command('retry');
      expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing to retry') });
      expect((await run()).stderr).toContain('already run as');
      expect(file.posts()).toHaveLength(4);
      const noWait = await command('retry', '--no-wait', '--json');
      expect(JSON.parse(noWait.stdout)).toEqual({ batchId: file.batchId, attached: 'ended' });
    },
  );

  it.concurrent('takes those of unknown delivery only when told so', async () => {
    const { environment, file, run, command } = await batch();
    const lost = file.add();
    environment.sandbox.setFault({ name: 'reset', ...lost, operation: 'message', times: 1 });
    await run();
    expect((await command('retry')).stderr).toContain('--include-unknown also sends items');
    expect(file.posts()).toHaveLength(1);
    const retried = await command('retry', '--include-unknown');
    expect(retried).toMatchObject({ code: 0, stdout: expect.stringMatching(/^status +completed × 1$/m) });
    expect(file.posts()).toHaveLength(2);
  });
});

it('a batch of nothing is an error of usage, for every command that takes one', async () => {
  const environment = await open();
  for (const name of ['status', 'watch', 'results', 'pause', 'resume', 'cancel', 'retry']) {
    const { code, stderr } = await starter(environment, ['batch', name, 'no-such-batch']);
    expect({ name, code }).toEqual({ name, code: 2 });
    expect(stderr).toContain('There is no batch "no-such-batch"');
  }
});

it('a batch goes by its workflow id too', async () => {
  const { environment, file, run } = await batch();
  file.add();
  await run();
  const { code, stdout } = await starter(environment, ['batch', 'status', `follow-up-batch:${file.batchId}`]);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^batch +${file.batchId}$`, 'm'));
});
