import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { startSandbox } from '../../sandbox';
import { temporal } from '../harness/temporal';
import { ROOT, WorkerProcess } from '../harness/worker-process';
import { StarterProcess } from './starter/starter-process';

const PROMPT = 'Replace the phrase sesquipedalian-prompt everywhere.';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'data-converter-'));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A dev server of the test's own, so that nobody else writes into its database. */
async function ownServer(databaseFile: string): Promise<DevServer> {
  const server = await startDevServer({ cli: temporal().cli, databaseFile, searchAttributes: true });
  cleanUps.push(() => server.stop());
  return server;
}

/** Runs one follow-up by compiled worker and starter, and returns everything that was written anywhere. */
async function followUpWith(env: Record<string, string>, folder: string) {
  const databaseFile = path.join(folder, 'temporal.db');
  const server = await ownServer(databaseFile);
  const sandbox = await startSandbox({ seedJobs: false, turnMs: 500 });
  cleanUps.push(() => sandbox.close());
  sandbox.addJob({ projectId: 'docs', id: 'job-1' });
  const connection = { TEMPORAL_ADDRESS: server.address, ...env };
  const agent = { AGENT_API_BASE_URL: sandbox.baseUrl, AGENT_API_KEY: sandbox.apiKey, LOG_LEVEL: 'debug' };
  const worker = await WorkerProcess.start({ ...connection, ...agent });
  cleanUps.push(() => worker.stop());
  await worker.says(/^ready$/);
  const words = ['send', '--project', 'docs', '--job', 'job-1', '--request-id', 'r1', '--json'];
  const times = ['--confirm', '1s', '--polling-initial', '200ms', '--settle', '1s'];
  const sent = await StarterProcess.start([...words, ...times, '--prompt', PROMPT], connection).ended();
  const status = await StarterProcess.start(
    ['status', 'follow-up:docs:job-1:r1', '--json'],
    connection,
  ).ended();
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
  it('keeps prompt and link from the server’s database and the logs, and lets worker and starter read them', async () => {
    const folder = await temporaryFolder();
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

  it('is what keeps them from it: without it both are there', async () => {
    const { sent, database } = await followUpWith({}, await temporaryFolder());
    const { prLink } = JSON.parse(sent.stdout) as { prLink: string };
    for (const text of ['sesquipedalian-prompt', prLink]) expect(database).toContain(text);
  });

  it('can have a payload converter of its own, which the workflows then use too', async () => {
    const folder = await temporaryFolder();
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

  it.each([
    ['is not there', undefined, /can't be loaded \(Cannot find module/],
    ['exports something else', 'exports.codecs = []', /must export a DataConverter/],
    [
      'exports codecs that are none',
      'exports.dataConverter = { payloadCodecs: [{}] }',
      /must export a DataConverter/,
    ],
    ['throws', 'throw new Error("no key")', /can't be loaded \(no key\)/],
  ])('whose module %s stops worker and starter, with its path', async (_what, source, problem) => {
    const module = path.join(await temporaryFolder(), 'converter.js');
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
