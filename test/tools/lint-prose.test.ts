import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';

const ROOT = path.resolve(__dirname, '../..');

/** The command also checks this file, so this file does not contain the word itself. */
const REJECTED_WORD = ['no', 'body'].join('');

const folder = temporaryFolder();

/** Writes files, checks their language as `npm run lint:prose` does, and returns the output with the names of the files. */
async function lintProse(
  files: Readonly<Record<string, string>>,
): Promise<{ output: string; code: unknown }> {
  const paths = Object.keys(files).map((name) => path.join(folder, name));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  const args = ['--import', 'tsx', 'tools/docs/lint-prose.ts', ...paths];
  const { stdout, stderr, code } = await new Program(process.execPath, args, { cwd: ROOT }).waitForEnd();
  return { output: (stdout + stderr).replaceAll(folder + path.sep, ''), code };
}

describe('lint:prose with a rejected word in four files', () => {
  let result: Awaited<ReturnType<typeof lintProse>>;
  beforeAll(async () => {
    result = await lintProse({
      'page.md': `# Title\n\nA sentence of two lines that\n${REJECTED_WORD} reads.\n`,
      'comment.ts': `const a = 1;\n\n/**\n * The number of \`reads\`,\n * for ${REJECTED_WORD}.\n */\nconst b = 2;\n`,
      'string.ts': `const a = 1;\nthrow new Error(\n  \`item \${a}: \` +\n    'there is ${REJECTED_WORD}',\n);\n`,
      'title.test.ts': `// Proves A1.\nit('${REJECTED_WORD} waits for the job', () => {});\n`,
    });
  });

  it.each([
    ['a page', 'page.md', 4],
    ['a comment', 'comment.ts', 5],
    ['a string', 'string.ts', 4],
    ['a test title', 'title.test.ts', 2],
  ])('reports the line of the word in %s', (_, file, line) => {
    const findings = result.output.split('\n').filter((text) => text.startsWith(`${file}:`));
    expect(findings).toEqual([expect.stringMatching(`^${file}:${line}  ${REJECTED_WORD} => `)]);
  });

  it('fails', () => {
    expect(result).toMatchObject({ output: expect.stringMatching(/^4 findings in 4 files$/m), code: 1 });
  });
});

it('lint:prose accepts a rejected word that is code, in a page, in a comment and in a message', async () => {
  const result = await lintProse({
    'page.md': `The user \`${REJECTED_WORD}\` owns the file.\n`,
    'code.ts': `// The user \`${REJECTED_WORD}\` owns the file.\nconst ${REJECTED_WORD} = \`no user \\\`${REJECTED_WORD}\\\`\`;\n`,
  });
  expect(result).toEqual({ output: '0 findings in 2 files\n', code: 0 });
});
