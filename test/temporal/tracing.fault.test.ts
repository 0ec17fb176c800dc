import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { newSendCommand } from '../cli/commands/run-cli';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { SpanReceiver, TRACING } from '../harness/span-receiver';
import { temporal } from '../harness/temporal';
import { TemporalGate } from '../harness/temporal-gate';
import { temporaryFolder } from '../harness/temporary-folder';

/** A plugin with which the worker caches no workflow. Every workflow task therefore replays the history. */
const NO_CACHE = path.join(temporaryFolder(), 'no-cache.mjs');
writeFileSync(
  NO_CACHE,
  "export default { name: 'no-cache', configureWorker: (options) => ({ ...options, maxCachedWorkflows: 0 }) };",
);

it('no span appears twice after replays and a killed worker, also if the worker was killed before it reported its workflow task', async () => {
  const gate = await TemporalGate.open(temporal().address);
  const test = (receiver: SpanReceiver) => {
    const env = { ...receiver.env, FOLLOW_UP_PLUGINS: `${TRACING.FOLLOW_UP_PLUGINS},${NO_CACHE}` };
    return ProcessEnvironment.with(
      { env: { ...env, TEMPORAL_ADDRESS: gate.address } },
      async (environment) => {
        const lost = await environment.startWorker();
        // This task follows the send, so the spans of the send and its start have ended.
        const held = gate.hold('RespondWorkflowTaskCompleted', 'call', 'getJob');
        const { args, projectId, workflowId } = newSendCommand(environment, { turn: { reads: 8 } });
        const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
        const cli = (...cliArgs: string[]) => Program.startCli(cliArgs, variables).waitForEnd();
        expect(await cli(...args, '--prompt', 'Fix it.', '--no-wait')).toMatchObject({ code: 0 });
        await held.waitForCall();
        await receiver.waitFor('StartActivity:sendMessage');
        lost.signal('SIGKILL');
        await lost.exited;
        held.release();
        const worker = await environment.startWorker();
        expect(await cli('watch', workflowId)).toMatchObject({ code: 0 });
        worker.signal('SIGTERM');
        expect(await worker.exited).toEqual({ code: 0, signal: null });
        expect(environment.posts({ projectId })).toHaveLength(1);
      },
    );
  };
  await SpanReceiver.with(async (receiver) => {
    await test(receiver);
    for (const name of ['StartWorkflow:followUp', 'RunWorkflow:followUp', 'RunActivity:sendMessage', 'POST'])
      expect({ name, spans: receiver.named(name).length }).toEqual({ name, spans: 1 });
    console.log(
      receiver.spans.map((s) => s.name + ' ' + s.spanId).join('\n'),
      receiver.repeated().map((s) => s.name),
    );
    // The new worker repeats the task of the lost worker, and sends the span of this task again with the same ID and the same
    // times. A backend stores such a span once.
    expect(receiver.repeated().map(({ name }) => name)).toEqual(['StartActivity:sendMessage']);
    const [first, second, ...others] = receiver.named('StartActivity:sendMessage');
    expect(second).toEqual(first);
    expect(others).toEqual([]);
  }).finally(() => gate.close());
});
