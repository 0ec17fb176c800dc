import { expect, it } from '@jest/globals';
import { newSendCommand } from '../cli/commands/run-cli';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { SpanReceiver, TRACING } from '../harness/span-receiver';

const WORKFLOW = ['RunWorkflow:followUp', 'StartWorkflow:followUp'];
const activity = (type: string) => [`RunActivity:${type}`, `StartActivity:${type}`, ...WORKFLOW];

it('with the example plugin, one trace leads from the CLI through the workflow and the activities to the requests at the agent service', async () => {
  await SpanReceiver.with(async (receiver) => {
    const env = { ...receiver.env, ...TRACING };
    await ProcessEnvironment.with({ env }, async (environment) => {
      const worker = await environment.startWorker();
      // Only the plugin's interceptors differ from the prebuilt bundle.
      const { changed } = await worker.waitForLog(/^bundled the workflows$/);
      expect(changed).toEqual(['workflowInterceptorModules']);
      const { args } = newSendCommand(environment);
      const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
      const sent = await Program.startCli([...args, '--prompt', 'Fix it.'], variables).waitForEnd();
      expect(sent).toMatchObject({ code: 0 });
      worker.signal('SIGTERM');
      expect(await worker.exited).toEqual({ code: 0, signal: null });

      const requests = environment.sandbox.journal
        .entries()
        .filter(({ traceparent }) => traceparent !== null);
      const origins = requests.map(({ operation, traceparent }) => {
        const [, traceId, spanId] = traceparent?.split('-') ?? [];
        const span = receiver.spans.find((each) => each.traceId === traceId && each.spanId === spanId);
        return [operation, traceId, ...receiver.path(span)];
      });
      const traceId = receiver.named('StartWorkflow:followUp')[0]?.traceId;
      expect(origins.slice(0, 3)).toEqual([
        ['get', traceId, 'GET', ...activity('sendMessage')],
        ['message', traceId, 'POST', ...activity('sendMessage')],
        ['get', traceId, 'GET', ...activity('getJob')],
      ]);
      // The worker's check of the API key does not belong to a follow-up.
      expect(environment.sandbox.journal.entries({ traceparent: null })).toHaveLength(1);
      expect(receiver.repeated()).toEqual([]);
    });
  });
});
