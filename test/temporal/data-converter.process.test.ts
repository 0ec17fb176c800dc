import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { startDevServer } from '../../dev/dev-server';
import { jobToSendTo } from '../cli/commands/starter';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporaryFolder } from '../harness/temporary-folder';
import { temporal } from '../harness/temporal';
import { ROOT, WorkerProcess } from '../harness/worker-process';
import { StarterProcess } from '../harness/starter-process';

const PROMPT = 'Replace the phrase sesquipedalian-prompt everywhere.';

const cleanUps: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

const root = temporaryFolder();
const newFolder = () => mkdtemp(path.join(root, 'test-'));

/** Runs one follow-up by compiled worker and starter, and returns everything that was written anywhere. */
async function followUpWith(env: Record<string, string>, folder: string) {
  // A server of its own, so that nobody else writes into its database.
  const databaseFile = path.join(folder, 'temporal.db');
  const server = await startDevServer({ cli: temporal().cli, databaseFile, searchAttributes: true });
  cleanUps.push(() => server.stop());
  const { address } = server;
  const environment = await ProcessEnvironment.open({ address, env: { LOG_LEVEL: 'debug', ...env } });
  cleanUps.push(() => environment.close());
  const worker = await environment.startWorker();
  const { words, workflowId } = jobToSendTo(environment);
  const variables = { TEMPORAL_ADDRESS: address, FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
  const starter = (...args: string[]) => StarterProcess.start([...args, '--json'], variables).ended();
  const sent = await starter(...words, '--prompt', PROMPT);
  const status = await starter('status', workflowId);
  worker.signal('SIGTERM');
  await worker.exited;
  await server.stop();
  const files = (await readdir(folder)).filter((name) => name.startsWith('temporal.db'));
  const database = (await Promise.all(files.map((name) => readFile(path.join(folder, name), 'latin1')))).join(
    '',
  );
  return { sent, status, database, workerLog: worker.stdout + worker.stderr };
}

describe('FOLLOW_UP_DATA_CONVERTER', () => {
  it.concurrent('keeps prompt and link out of database and logs; worker and starter read them', async () => {
    const folder = await newFolder();
    const keyFile = path.join(folder, 'payload-key');
    await writeFile(keyFile, randomBytes(32).toString('base64'));
    const converter = path.join(ROOT, 'examples/encryption/data-converter.js');
    const env = {
      FOLLOW_UP_DATA_CONVERTER: path.relative(process.cwd(), converter),
      PAYLOAD_KEY_FILE: keyFile,
    };
    const { sent, status, database, workerLog } = await followUpWith(env, folder);

    expect(sent).toMatchObject({ code: 0 });
    const { prLink } = JSON.parse(sent.stdout) as { prLink: string };
    expect(prLink).toMatch(/^http.*\/pull\//);
    expect(JSON.parse(status.stdout)).toMatchObject({ end: { prLink } });
    for (const secret of ['sesquipedalian-prompt', prLink]) {
      expect(database).not.toContain(secret);
      expect(database).not.toContain(Buffer.from(secret).toString('base64'));
    }
    expect(workerLog).not.toMatch(/sesquipedalian-prompt|\/pull\//);
    expect(database).toContain('binary/encrypted');
    expect(database).toContain('encryption-key-id');
  });

  it.concurrent('can have a payload converter of its own, which the workflows then use too', async () => {
    const folder = await newFolder();
    await writeFile(
      path.join(folder, 'payload-converter.js'),
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
    const module = path.join(folder, 'converter.js');
    await writeFile(
      module,
      `exports.default = Promise.resolve({ payloadConverterPath: ${JSON.stringify(path.join(folder, 'payload-converter.js'))} });`,
    );
    const { sent, database } = await followUpWith({ FOLLOW_UP_DATA_CONVERTER: module }, folder);
    expect(sent).toMatchObject({ code: 0 });
    expect(database).not.toContain('sesquipedalian-prompt');
  });

  it.concurrent.each([
    ['is not there', undefined, /can't be loaded \(Cannot find module/],
    ['exports something else', 'exports.codecs = []', /must export a DataConverter/],
  ])('whose module %s stops worker and starter, with its path', async (_what, source, problem) => {
    const module = path.join(await newFolder(), 'converter.js');
    if (source !== undefined) await writeFile(module, source);
    const env = { FOLLOW_UP_DATA_CONVERTER: module };
    const agent = { AGENT_API_BASE_URL: 'http://127.0.0.1:9', AGENT_API_KEY: 'svc_9d2b7c41e0f6' };
    const worker = await WorkerProcess.start({ ...agent, ...env });
    cleanUps.push(() => worker.stop());
    const starter = await StarterProcess.start(['list'], env).ended();
    expect(await worker.exited).toEqual({ code: 2, signal: null });
    expect(starter.code).toBe(2);
    for (const said of [worker.stderr, starter.stderr]) {
      expect(said).toContain(`FOLLOW_UP_DATA_CONVERTER: ${module}`);
      expect(said).toMatch(problem);
    }
  });
});
