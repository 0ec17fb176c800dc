import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { jobToSendTo } from '../cli/commands/starter';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const PROMPT = 'Replace the phrase sesquipedalian-prompt everywhere.';

const folder = temporaryFolder();

/** A module with the encryption of the example, and with a payload converter of its own, which flips a bit of each byte. */
async function writeConverter(): Promise<NodeJS.ProcessEnv> {
  const at = (name: string) => path.join(folder, name);
  const [keyFile, payloadConverterPath, module] = [at('key'), at('payload-converter.js'), at('module.js')];
  await writeFile(keyFile, randomBytes(32).toString('base64'));
  await writeFile(
    payloadConverterPath,
    `const { JsonPayloadConverter, CompositePayloadConverter, UndefinedPayloadConverter } =
       require(${JSON.stringify(path.join(ROOT, 'node_modules/@temporalio/common'))});
     const json = new JsonPayloadConverter();
     const flip = (payload) => ({ ...payload, data: payload.data.map((byte) => byte ^ 1) });
     exports.payloadConverter = new CompositePayloadConverter(new UndefinedPayloadConverter(), {
       encodingType: 'json/plain',
       toPayload: (value) => { const payload = json.toPayload(value); return payload && flip(payload); },
       fromPayload: (payload) => json.fromPayload(flip(payload)),
     });`,
  );
  const example = path.join(ROOT, 'examples/encryption/data-converter.js');
  await writeFile(
    module,
    `exports.default = Promise.resolve(require(${JSON.stringify(example)}).dataConverter)
       .then((converter) => ({ ...converter, payloadConverterPath: ${JSON.stringify(payloadConverterPath)} }));`,
  );
  return { FOLLOW_UP_DATA_CONVERTER: path.relative(process.cwd(), module), PAYLOAD_KEY_FILE: keyFile };
}

it('FOLLOW_UP_DATA_CONVERTER keeps prompt and link out of server and logs; worker, workflows and starter read them', async () => {
  const env = await writeConverter();
  await ProcessEnvironment.with({ env: { LOG_LEVEL: 'debug', ...env } }, async (environment) => {
    const worker = await environment.startWorker();
    const { words, workflowId } = jobToSendTo(environment);
    const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
    const starter = (...args: string[]) => Program.starter([...args, '--json'], variables).ended();
    const sent = await starter(...words, '--prompt', PROMPT);
    expect(sent).toMatchObject({ code: 0 });
    const { prLink } = JSON.parse(sent.stdout) as { prLink: string };
    expect(prLink).toMatch(/^http.*\/pull\//);
    expect(JSON.parse((await starter('status', workflowId)).stdout)).toMatchObject({ end: { prLink } });

    const { workflow, workflowService, options } = environment.client;
    const asked = { namespace: options.namespace, execution: { workflowId } };
    const description = await workflowService.describeWorkflowExecution(asked);
    const atServer = textIn([await workflow.getHandle(workflowId).fetchHistory(), description]);
    for (const secret of ['sesquipedalian-prompt', prLink])
      for (const bytes of [Buffer.from(secret), Buffer.from(secret).map((byte) => byte ^ 1)])
        for (const text of [bytes.toString('latin1'), Buffer.from(bytes).toString('base64')])
          expect(atServer).not.toContain(text);
    expect(atServer).toContain('binary/encrypted');
    expect(atServer).toContain('encryption-key-id');
    expect(worker.stdout + worker.stderr).not.toMatch(/sesquipedalian-prompt|\/pull\//);
  });
});

/** Every text within a value, also where it is in the bytes of a payload. */
function textIn(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([name, each]) => `${name} ${textIn(each)}`)
    .join('\n');
}
