import { expect, it } from '@jest/globals';
import { TestBatch } from '../../harness/test-batch';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { jsonl, jsonLines, runCli } from './run-cli';

const { open } = sharedEnvironment();

const FAILS = { turn: { outcome: 'failed', reads: 2 } } as const;

/** Returns a batch, and functions that run CLI commands for it. */
async function newBatch() {
  const environment = await open();
  const batch = new TestBatch(environment);
  const { batchId } = batch;
  const run = (...more: string[]) =>
    runCli(environment, ['batch', 'run', '-', '--batch-id', batchId, ...more], jsonl(batch));
  const command = (name: string, ...more: string[]) => runCli(environment, ['batch', name, batchId, ...more]);
  return { batch, batchId, run, command };
}

const matching = (pattern: RegExp) => expect.stringMatching(pattern);

// Proves B9.
it.concurrent(
  'batch run reports the outcome of each item, and batch retry sends only items that were not sent or were rejected',
  async () => {
    const { batch, batchId, run, command } = await newBatch();
    batch.addItems(2);
    batch.addItem(FAILS);
    batch.addItem({}, {}, { name: 'status', operation: 'message', times: 1, parameters: { code: 422 } });
    batch.addItem({}, {}, { name: 'reset', operation: 'message', times: 1 });
    batch.addRequest({ projectId: batch.projectId, jobId: 'nobody' });
    const { code, stdout, stderr } = await run();
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^state +done$[^]*^items +6 of 6 ended$/m);
    expect(stdout).toMatch(/^status +(completed × 2, failed × 1|failed × 1, completed × 2)$/m);
    expect(stdout).toMatch(/^first failures\n[^]*^ {2}follow-up:project-.* failed$/m);
    expect(stderr).toContain(`batch       ${batchId} (6 items)`);
    expect(stderr).toContain(`http://ui.example/namespaces/default/workflows/follow-up-batch%3A${batchId}`);
    // The batch may have ended at the first progress update.
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ (?:done · )?\d of 6 · \d+ %/m);
    expect(stderr).toMatch(/^[-\dT]+:\d\d:\d\dZ {2}failed +accepted {2}project-batch-\w+\//m);
    const json = await command('results', '--json');
    const items = jsonLines(json.stdout).slice(0, -1);
    expect(new Set(items.map(({ workflowId }) => workflowId)).size).toBe(6);
    const times = items.map(({ endedAt = '' }) => endedAt);
    expect(times).toEqual(times.toSorted());
    const byFailure = { JobNotFound: 1, FollowUpRejected: 1, DeliveryUnknown: 1 };
    const end = { batchId, state: 'done', message: null, summary: { items: 6, ended: 6, byFailure } };
    expect(jsonLines(json.stdout).at(-1)).toMatchObject(end);
    expect((await command('watch', '--json')).stdout).toBe(json.stdout);
    const text = await command('results');
    expect(text.stdout).toMatch(/JobNotFound +not-sent +[-\w]+\/nobody +The agent service has no such job/);
    expect(text.stderr).toContain('6 of 6 ended; the batch is done');

    const retried = await command('retry', '--json');
    expect(retried).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('the batch had ended (completed)'),
    });
    const summary = { ended: 6, byStatus: { completed: 3 }, byFailure: { DeliveryUnknown: 1 } };
    expect(jsonLines(retried.stdout).at(-1)).toMatchObject({ state: 'done', summary });
  },
);

// Proves B8.
it.concurrent(
  'batch run exits with 30 if more items fail than --max-failures, continues with a higher maximum, and then has nothing to retry',
  async () => {
    const { batch, batchId, run, command } = await newBatch();
    batch.addItems(4, FAILS);
    const first = await run('--concurrency', '1', '--max-failures', '25%');
    const exceeded =
      /^state +max-failures-exceeded\nwhy +\d+ items failed, which is more than the maximum[^]*^items +2 of 4 ended$/m;
    expect(first).toMatchObject({ code: 30, stdout: matching(exceeded) });
    const why = matching(/^why .*run the batch again with a higher `--max-failures`/m);
    expect(await command('status')).toMatchObject({ code: 30, stdout: why });
    const second = await run('--concurrency', '4', '--max-failures', '100%');
    expect(second).toMatchObject({ code: 0, stdout: matching(/^items +4 of 4 ended$/m) });
    expect(second.stderr).toContain(
      'resumed     the batch had ended (failed); messages that may have arrived are not sent again',
    );

    const nothing = await command('retry', '--no-wait', '--json');
    expect(JSON.parse(nothing.stdout)).toEqual({ batchId, attached: 'ended' });
    expect(nothing.stderr).toMatch(/Nothing to retry.* --include-unknown also sends items/);
    const done = expect.stringContaining(
      `Nothing was sent, because these items have already run as the batch ${batchId}. To send the items without a request ID once more, use another --batch-id.`,
    );
    expect(await run()).toMatchObject({ code: 0, stderr: done });
    const ended = expect.stringContaining('has already ended: completed');
    expect(await command('pause')).toMatchObject({ code: 1, stderr: ended });
    expect(batch.posts()).toHaveLength(4);
  },
);

// Proves B10.
it.concurrent(
  'a running batch can be attached to, paused, resumed, given another concurrency and cancelled; only --cancel-running cancels running items',
  async () => {
    const { batch, batchId, run, command } = await newBatch();
    batch.addItems(4, ENDLESS_TURN);
    const start = () => run('--concurrency', '1', '--no-wait');
    const first = { code: 0, stdout: `${batchId}\n` };
    const words = matching(RegExp(`starter -- batch watch ${batchId}`));
    expect(await start()).toEqual({ ...first, stderr: words });
    await batch.waitUntilSent(1);
    expect(await start()).toEqual({
      ...first,
      stderr: matching(/attached {4}this batch is already running/),
    });
    expect((await command('pause')).stdout).toMatch(/^state +paused$/m);
    // The number of open items changes with the next round of the batch.
    const readStatus = async () =>
      JSON.parse((await command('status', '--json')).stdout) as { summary: { open: number } };
    const status = await eventually('an item is open', readStatus, {
      until: ({ summary }) => summary.open > 0,
    });
    const summary = { items: 4, open: 1, concurrency: 1 };
    expect(status).toMatchObject({ batchId, state: 'paused', summary });
    expect(JSON.parse((await command('resume', '--json')).stdout)).toMatchObject({ state: 'running' });
    expect((await command('concurrency', '4')).stdout).toMatch(/^running +\d \(concurrency 4\)$/m);
    await batch.waitUntilSent(4);
    expect((await command('retry')).stderr).toContain('is still running');

    const cancelled = await command('cancel');
    expect(cancelled).toMatchObject({ code: 0, stdout: matching(/^state +cancelled$/m) });
    expect(cancelled.stderr).toContain(`npm run starter -- list --batch ${batchId}`);
    expect((await command('cancel')).stderr).toContain('already cancelled');
    expect(await command('watch')).toMatchObject({ code: 24 });
    const all = await command('cancel', '--cancel-running', '--json');
    expect(JSON.parse(all.stdout)).toMatchObject({ cancelled: 4, end: { state: 'cancelled' } });
    expect(batch.posts()).toHaveLength(4);
  },
);
