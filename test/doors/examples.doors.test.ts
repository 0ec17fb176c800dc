import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { requests } from '../../docs/requests.json';
import { vectors } from '../../docs/workflow-id-vectors.json';
import { ROOT } from '../harness/worker-process';
import { mustRun, Program } from '../harness/program';
import { Ground, teamProject } from './ground';

// A first run downloads and compiles the dependencies of each language.
jest.setTimeout(600_000);

const CACHE = path.join(ROOT, '.cache/doors');
const PROMPT = 'Please fix the typo.';

let ground: Ground;

type Send = (
  project: string,
  job: string,
  requestId: string,
  prompt?: string,
) => Promise<{ code: number | null; stdout: string; stderr: string }>;

/** One way to send a follow-up, as a person types it. */
interface Door {
  readonly name: string;
  /** Builds the example, and has it judge the published tables in the language's own way. */
  readonly build: () => Promise<void>;
  readonly send: Send;
  /** The same as the docs have it, where that takes longer. */
  readonly sendAsDocumented?: Send;
}

const at = (folder: string) => ({ cwd: path.resolve(ROOT, 'examples', folder), env: ground.env });
const python = path.join(CACHE, 'python/bin/python');
let classpath = '';
/** Maven resets the colours of a terminal, whatever it is told. */
const plain = (text: string) => text.replaceAll('\u001b[0m', '').trim();

/** A door whose program is run as `command … PROJECT JOB REQUEST_ID PROMPT`. */
function program(folder: string, command: string, ...args: readonly string[]): Send {
  return (project, job, requestId, prompt = PROMPT) =>
    new Program(command, [...args, project, job, requestId, prompt], at(folder)).ended();
}

const doors: Door[] = [
  {
    name: 'TypeScript, with the packed client',
    build: async () => {
      await mustRun('npx', ['tsc'], at(teamProject()));
      await mustRun('node', ['--test', 'dist/tables.test.js'], at(teamProject()));
    },
    send: (...words) => program(teamProject(), 'node', 'dist/follow-up.js')(...words),
  },
  {
    name: 'Python',
    build: async () => {
      await mustRun('python3', ['-m', 'venv', path.join(CACHE, 'python')], { cwd: ROOT });
      await mustRun(python, ['-m', 'pip', 'install', '-q', '-r', 'requirements.txt'], at('python'));
      await mustRun(python, ['-B', 'test_tables.py'], at('python'));
    },
    send: program('python', python, '-B', 'follow_up.py'),
  },
  {
    name: 'Go',
    build: async () => {
      await mustRun('go', ['build', '-o', path.join(CACHE, 'go-example'), '.'], at('go'));
      await mustRun('go', ['test', '-vet=off', '-count=1', './...'], at('go'));
    },
    send: program('go', path.join(CACHE, 'go-example')),
  },
  {
    name: 'Java',
    build: async () => {
      const told = ['exec:exec', '-Dexec.executable=echo', '-Dexec.args=%classpath'];
      classpath = plain(await mustRun('mvn', ['-q', '-B', 'test', ...told], at('java')));
    },
    send: (...words) => program('java', 'java', '-cp', classpath, 'FollowUp')(...words),
    sendAsDocumented: async (project, job, requestId, prompt = PROMPT) => {
      const args = [project, job, requestId, prompt].map((each) => `'${each}'`).join(' ');
      const words = ['-q', '-B', 'exec:java', `-Dexec.args=${args}`];
      const ended = await new Program('mvn', words, at('java')).ended();
      return { ...ended, stdout: `${plain(ended.stdout)}\n` };
    },
  },
  shellDoor('the Temporal CLI', 'cli.sh'),
  shellDoor('curl', 'curl.sh'),
];

function shellDoor(name: string, script: string): Door {
  const start = (workflowId: string, request: unknown) =>
    new Program(`./${script}`, [workflowId, JSON.stringify(request)], at('shell')).ended();
  const idOf = async (...ids: string[]) => (await mustRun('./workflow-id.sh', ids, at('shell'))).trimEnd();
  return {
    name,
    build: async () => {
      for (const { projectId, jobId, requestId, workflowId } of vectors)
        expect(await idOf(projectId, jobId, requestId)).toBe(workflowId);
      // The script passes on what it is given: it judges none of the others.
      const [accepted, refused] = [true, false].map((is) =>
        requests.findLast(({ problem }) => (problem === null) === is),
      );
      expect((await start(`${script}:accepted`, accepted?.request)).stderr).toContain('JobNotFound, ');
      const problem = expect.stringMatching(`InvalidRequest, .*${refused?.problem ?? ''}: `);
      expect(await start(`${script}:refused`, refused?.request)).toMatchObject({ code: 1, stderr: problem });
    },
    send: async (projectId, jobId, requestId, prompt = PROMPT) =>
      start(await idOf(projectId, jobId, requestId), { projectId, jobId, requestId, prompt, confirm: '2s' }),
  };
}

beforeAll(async () => {
  ground = await Ground.open();
  await ground.startWorker();
});

afterAll(() => ground.close());

describe.each(doors)('by $name', ({ build, send, sendAsDocumented = send }) => {
  const projectId = `project-${randomUUID().slice(0, 8)}`;

  it('the published workflow ids and requests are judged as their tables say', async () => {
    await expect(build()).resolves.toBeUndefined();
  });

  it('a follow-up started three times is sent once, and another prompt under its name is a conflict', async () => {
    const { jobId } = ground.sandbox.addJob({ projectId });
    const both = await Promise.all([
      send(projectId, jobId, 'order 4711'),
      send(projectId, jobId, 'order 4711'),
    ]);
    const late = await sendAsDocumented(projectId, jobId, 'order 4711');
    const { prLink } = ground.sandbox.job({ projectId, jobId }).job;
    const printed = { code: 0, stdout: `completed ${String(prLink)}\n` };
    for (const start of [...both, late]) expect(start).toMatchObject(printed);
    const other = await send(projectId, jobId, 'order 4711', 'Please fix something else.');
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/conflict/i) });
    expect(ground.sandbox.journal.entries({ projectId, jobId, operation: 'message' })).toHaveLength(1);
  });

  it('a follow-up that fails tells its type and what became of the message', async () => {
    // The client of TypeScript has codes of its own style.
    const words = /(JobNotFound|JOB_NOT_FOUND), delivery not-sent: The service knows no such job/;
    expect(await send(projectId, 'nobody', 'order-4711')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(words),
    });
  });
});
