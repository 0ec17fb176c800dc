import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROOT } from '../harness/worker-process';
import { mustRun, Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import {
  type EndToEndEnvironment,
  openEndToEndEnvironment,
  exampleProjectFolder,
} from './end-to-end-environment';

const CACHE = path.join(ROOT, '.cache/e2e');
const PROMPT = 'Please fix the typo.';
/** The worker rejects a workflow ID that differs from the derived one. Each language must therefore encode all these characters. */
const REQUEST_ID = "naïve e\u0301 😀 100% a/b:%2F+&=?#!'()*~-._@$,;[]<>|{}^`";

const folder = temporaryFolder();

let environment: EndToEndEnvironment;

type Send = (
  project: string,
  job: string,
  requestId: string,
  prompt?: string,
) => Promise<{ code: number | null; stdout: string; stderr: string }>;

/** An example program or script that sends a follow-up, with the command that a user types. */
interface SendExample {
  readonly name: string;
  readonly build?: () => Promise<unknown>;
  readonly send: Send;
}

/** The folder and the environment of an example. Java decodes its arguments with the encoding of the locale. */
const at = (folder: string) => ({
  cwd: path.resolve(ROOT, 'examples', folder),
  env: { ...environment.env, LC_ALL: 'C.UTF-8' },
});
const python = path.join(CACHE, 'python/bin/python');

/** An example whose program is called as `command … PROJECT JOB REQUEST_ID PROMPT`. */
function program(folder: string, command: string, ...args: readonly string[]): Send {
  return (project, job, requestId, prompt = PROMPT) =>
    new Program(command, [...args, project, job, requestId, prompt], at(folder)).waitForEnd();
}

const sendExamples: SendExample[] = [
  {
    name: 'TypeScript, with the packed client',
    build: () => mustRun('npx', ['tsc'], at(exampleProjectFolder())),
    send: (...words) => program(exampleProjectFolder(), 'node', 'dist/follow-up.js')(...words),
  },
  {
    name: 'Python',
    build: async () => {
      await mustRun('python3', ['-m', 'venv', path.join(CACHE, 'python')], { cwd: ROOT });
      await mustRun(python, ['-m', 'pip', 'install', '-q', '-r', 'requirements.txt'], at('python'));
    },
    send: program('python', python, '-B', 'follow_up.py'),
  },
  {
    name: 'Go',
    build: () => mustRun('go', ['build', '-o', path.join(CACHE, 'go-example'), '.'], at('go')),
    send: program('go', path.join(CACHE, 'go-example')),
  },
  {
    name: 'Java',
    build: () => mustRun('mvn', ['-q', '-B', 'compile'], at('java')),
    send: async (...words) => {
      const args = [...words, PROMPT].slice(0, 4).map((each) => `"${each ?? ''}"`);
      const run = ['-q', '-B', 'exec:java', `-Dexec.args=${args.join(' ')}`];
      const ended = await new Program('mvn', run, at('java')).waitForEnd();
      // Maven always prints a sequence that resets the colors of a terminal.
      return { ...ended, stdout: ended.stdout.replaceAll('\u001b[0m', '') };
    },
  },
  shellExample('the Temporal CLI', 'cli.sh'),
  shellExample('curl', 'curl.sh'),
];

function shellExample(name: string, script: string): SendExample {
  const start = (workflowId: string, request: unknown) =>
    new Program(`./${script}`, [workflowId, JSON.stringify(request)], at('shell')).waitForEnd();
  const idOf = async (...ids: string[]) => (await mustRun('./workflow-id.sh', ids, at('shell'))).trimEnd();
  return {
    name,
    send: async (projectId, jobId, requestId, prompt = PROMPT) =>
      start(await idOf(projectId, jobId, requestId), {
        projectId,
        jobId,
        requestId,
        prompt,
        maxStaleness: '2s',
      }),
  };
}

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
  await environment.startWorker();
});

afterAll(() => environment.close());

describe.each(sendExamples)('with $name', ({ build, send }) => {
  const projectId = `project-${randomUUID().slice(0, 8)}`;

  beforeAll(() => build?.());

  it('three starts of a follow-up send one message, and another prompt with the same request ID is a conflict', async () => {
    const { jobId } = environment.sandbox.addJob({ projectId });
    const concurrent = await Promise.all([
      send(projectId, jobId, REQUEST_ID),
      send(projectId, jobId, REQUEST_ID),
    ]);
    const later = await send(projectId, jobId, REQUEST_ID);
    const { prLink } = environment.sandbox.job({ projectId, jobId }).job;
    const printed = { code: 0, stdout: `completed ${String(prLink)}\n` };
    for (const start of [...concurrent, later]) expect(start).toMatchObject(printed);
    const other = await send(projectId, jobId, REQUEST_ID, 'Please fix something else.');
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/conflict/i) });
    expect(environment.sandbox.journal.entries({ projectId, jobId, operation: 'message' })).toHaveLength(1);
  });

  it('prints the failure type and the delivery of a failed follow-up, whose job ID is a UUID in upper case', async () => {
    // The TypeScript client has its own error codes.
    const expectedError = /(JobNotFound|JOB_NOT_FOUND), delivery not-sent: The agent service has no such job/;
    // The worker rejects the request if the example does not derive a workflow ID in lower case.
    expect(await send(projectId, randomUUID().toUpperCase(), 'order-4711')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(expectedError),
    });
  });
});

it('the Python batch example starts a batch once, prints the outcomes, and rejects other items with the same batch ID', async () => {
  const file = path.join(folder, 'items.jsonl');
  const item = (jobId: string) =>
    JSON.stringify({ projectId: 'batch', jobId, prompt: PROMPT, maxStaleness: '2s' });
  const { jobId } = environment.sandbox.addJob({ projectId: 'batch' });
  const run = async (...items: string[]) => {
    await writeFile(file, items.join('\n'));
    return new Program(python, ['-B', 'follow_up_batch.py', 'nightly', file], at('python')).waitForEnd();
  };
  const items = [item(jobId), item('missing')];
  const printed = /"completed": 1\b.*^follow-up:batch:\S+ completed http.*$/ms;
  for (const repeated of [await run(...items), await run(...items)])
    expect(repeated).toMatchObject({ code: 0, stdout: expect.stringMatching(printed) });
  expect(await run(...items.slice(1))).toMatchObject({ code: 1, stderr: expect.stringMatching(/^conflict/) });
  expect(environment.sandbox.journal.entries({ projectId: 'batch', operation: 'message' })).toHaveLength(1);
});
