import { randomUUID } from 'node:crypto';
import { cp, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { requests } from '../../docs/requests.json';
import { vectors } from '../../docs/workflow-id-vectors.json';
import { ROOT } from '../harness/worker-process';
import type { Ended } from '../cli/command';
import { temporaryFolder } from '../harness/temporary-folder';
import { Ground, mustRun, run } from './ground';

// A first run downloads and compiles the dependencies of each language.
jest.setTimeout(600_000);

const EXAMPLES = path.join(ROOT, 'examples');
const CACHE = path.join(ROOT, '.cache/doors');
const PROMPT = 'Please fix the typo.';

let ground: Ground;
let typescript: string;

/** One way to send a follow-up, as a person types it. */
interface Door {
  readonly name: string;
  readonly prepare: () => Promise<unknown>;
  readonly send: (project: string, job: string, requestId: string, prompt?: string) => Promise<Ended>;
  /** Checks the published tables in the language's own way. */
  readonly expectTables: () => Promise<unknown>;
}

const at = (folder: string) => ({ cwd: path.resolve(EXAMPLES, folder), env: ground.env });
const python = path.join(CACHE, 'python/bin/python');

/** A door whose program is run as `command … PROJECT JOB REQUEST_ID PROMPT`. */
function program(command: string, args: readonly string[], folder: string): Door['send'] {
  return (project, job, requestId, prompt = PROMPT) =>
    run(command, [...args, project, job, requestId, prompt], at(folder));
}

const doors: Door[] = [
  {
    name: 'TypeScript, with the packed client',
    prepare: async () => {
      // As it lies in the repository, so that its path to the artefact holds.
      typescript = path.join(folder, 'examples/typescript');
      await mkdir(path.dirname(typescript));
      const filter = (file: string) => !file.includes('node_modules');
      await cp(path.join(EXAMPLES, 'typescript'), typescript, { recursive: true, filter });
      await symlink(path.join(ROOT, 'artifacts'), path.join(folder, 'artifacts'));
      await symlink(path.join(ROOT, 'docs'), path.join(folder, 'docs'));
      await mustRun('npm', ['install', '--no-audit', '--no-fund'], { cwd: typescript });
      await mustRun('npx', ['tsc'], { cwd: typescript });
    },
    send: (...words) => program('node', ['dist/follow-up.js'], typescript)(...words),
    expectTables: () => mustRun('node', ['--test', 'dist/tables.test.js'], at(typescript)),
  },
  {
    name: 'Python',
    prepare: async () => {
      await mustRun('python3', ['-m', 'venv', path.join(CACHE, 'python')], { cwd: ROOT });
      await mustRun(python, ['-m', 'pip', 'install', '-q', '-r', 'requirements.txt'], at('python'));
    },
    send: program(python, ['-B', 'follow_up.py'], 'python'),
    expectTables: () => mustRun(python, ['-B', 'test_tables.py'], at('python')),
  },
  {
    name: 'Go',
    prepare: () => mustRun('go', ['build', '-o', path.join(CACHE, 'go-example'), '.'], at('go')),
    send: program(path.join(CACHE, 'go-example'), [], 'go'),
    expectTables: () => mustRun('go', ['test', '-count=1', './...'], at('go')),
  },
  {
    name: 'Java',
    prepare: () => mustRun('mvn', ['-q', '-B', 'test-compile'], at('java')),
    send: async (project, job, requestId, prompt = PROMPT) => {
      const args = [project, job, requestId, prompt].map((each) => `'${each}'`).join(' ');
      const ended = await run('mvn', ['-q', '-B', 'exec:java', `-Dexec.args=${args}`], at('java'));
      // Maven resets the colours of a terminal, whatever it is told.
      return { ...ended, stdout: ended.stdout.replaceAll('\u001b[0m', '') };
    },
    expectTables: () => mustRun('mvn', ['-q', '-B', 'test'], at('java')),
  },
  shellDoor('the Temporal CLI', 'cli.sh'),
  shellDoor('curl', 'curl.sh'),
];

function shellDoor(name: string, script: string): Door {
  const start = (workflowId: string, request: unknown) =>
    run(`./${script}`, [workflowId, JSON.stringify(request)], at('shell'));
  const idOf = async (...ids: string[]) => (await mustRun('./workflow-id.sh', ids, at('shell'))).trimEnd();
  return {
    name,
    prepare: () => mustRun('jq', ['--version'], at('shell')),
    send: async (projectId, jobId, requestId, prompt = PROMPT) =>
      start(await idOf(projectId, jobId, requestId), { projectId, jobId, requestId, prompt, confirm: '2s' }),
    expectTables: async () => {
      for (const { projectId, jobId, requestId, workflowId } of vectors) {
        expect(await idOf(projectId, jobId, requestId)).toBe(workflowId);
      }
      for (const [n, { name: row, problem, request }] of requests.entries()) {
        const { code, stderr } = await start(`requests:${script}:${n}`, request);
        expect({ row, code, stderr }).toEqual({
          row,
          code: 1,
          stderr: expect.stringMatching(problem === null ? /JobNotFound, / : /InvalidRequest, /),
        });
        expect(stderr).toContain(problem === null ? '' : `${problem}: `);
      }
    },
  };
}

beforeAll(async () => {
  ground = await Ground.open(folder);
  await ground.startWorker();
});

afterAll(() => ground.close());

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();

describe.each(doors)('by $name', ({ prepare, send, expectTables }) => {
  const projectId = `project-${randomUUID().slice(0, 8)}`;

  beforeAll(prepare);

  it('a follow-up started three times is sent once, and another prompt under its name is a conflict', async () => {
    const { jobId } = ground.sandbox.addJob({ projectId });
    const both = await Promise.all([
      send(projectId, jobId, 'order 4711'),
      send(projectId, jobId, 'order 4711'),
    ]);
    const late = await send(projectId, jobId, 'order 4711');
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

  it('the published workflow ids and requests are judged as their tables say', async () => {
    await expectTables();
  });
});
