import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { temporal } from '@temporalio/proto';
import { newSendCommand } from '../cli/commands/run-cli';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const { history, workflowservice } = temporal.api;
const { DescribeWorkflowExecutionResponse: describedAs } = workflowservice.v1;
const PROMPT = 'Replace the phrase sesquipedalian-prompt everywhere.';

const folder = temporaryFolder();

/** Writes a module with the encryption of the example and a payload converter that reads only payloads that it has written. */
async function writeConverter(): Promise<NodeJS.ProcessEnv> {
  const at = (name: string) => path.join(folder, name);
  const [keyFile, payloadConverterPath, module] = [at('key'), at('payload-converter.js'), at('module.js')];
  await writeFile(keyFile, randomBytes(32).toString('base64'));
  await writeFile(
    payloadConverterPath,
    `const { defaultPayloadConverter: json } = require(${JSON.stringify(path.join(ROOT, 'node_modules/@temporalio/common'))});
     const marked = (payload, mark) => ({ ...payload, metadata: { ...payload.metadata, mark } });
     exports.payloadConverter = {
       toPayload: (value) => marked(json.toPayload(value), new Uint8Array([1])),
       fromPayload(payload) {
         if (payload.metadata.mark === undefined) throw new Error('another payload converter has written this payload');
         return json.fromPayload(payload);
       },
     };`,
  );
  const example = path.join(ROOT, 'examples/encryption/data-converter.js');
  await writeFile(
    module,
    `exports.default = Promise.resolve(require(${JSON.stringify(example)}).dataConverter)
       .then((converter) => ({ ...converter, payloadConverterPath: ${JSON.stringify(payloadConverterPath)} }));`,
  );
  return { FOLLOW_UP_DATA_CONVERTER: path.relative(process.cwd(), module), PAYLOAD_KEY_FILE: keyFile };
}

it('FOLLOW_UP_DATA_CONVERTER keeps prompt and link out of the Temporal server and the logs, and worker, workflows and CLI read them', async () => {
  const env = await writeConverter();
  await ProcessEnvironment.with({ env: { LOG_LEVEL: 'debug', ...env } }, async (environment) => {
    const worker = await environment.startWorker();
    const { args, workflowId } = newSendCommand(environment);
    const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
    const cli = (...cliArgs: string[]) => Program.startCli([...cliArgs, '--json'], variables).waitForEnd();
    const sent = await cli(...args, '--prompt', PROMPT);
    expect(sent).toMatchObject({ code: 0 });
    const { prLink } = JSON.parse(sent.stdout) as { prLink: string };
    expect(prLink).toMatch(/^http.*\/pull\//);
    expect(JSON.parse((await cli('status', workflowId)).stdout)).toMatchObject({ end: { prLink } });

    const { workflow, workflowService, options } = environment.client;
    const request = { namespace: options.namespace, execution: { workflowId } };
    const parts = [
      history.v1.History.encode(await workflow.getHandle(workflowId).fetchHistory()),
      describedAs.encode(await workflowService.describeWorkflowExecution(request)),
    ];
    const atServer = Buffer.concat(parts.map((part) => part.finish())).toString('latin1');
    for (const secret of ['sesquipedalian-prompt', prLink])
      for (const text of [secret, Buffer.from(secret).toString('base64')])
        expect(atServer).not.toContain(text);
    expect(atServer).toContain('binary/encrypted');
    expect(atServer).toContain('encryption-key-id');
    expect(worker.stdout + worker.stderr).not.toMatch(/sesquipedalian-prompt|\/pull\//);
  });
});
