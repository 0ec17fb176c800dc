/**
 * Creates docs/proofs.md, which lists the tests that prove each row of docs/guarantees.md. A comment right above a test names its rows:
 * `// Proves W1, A3.`
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(__dirname, '../..');

export interface Test {
  /** The path from the root of the repository. */
  readonly file: string;
  /** The title as it is written in the file. */
  readonly title: string;
  /** The rows that the test proves. */
  readonly rows: readonly string[];
}

/** Matches the comments right above a test, its call with or without a table of `each`, and its title. */
const TEST =
  /((?:^ *\/\/.*\n)*)^ *it(?:\.(?!each)\w+)*(?:\.each(?:<[\s\S]*?>)?\((?:[^'"`]*?|[\s\S]*?\](?: as const)?)\))?\(\s*(['"`])((?:\\.|(?!\2).)*)\2/gm;
const TAG = /^ *\/\/ Proves (.*)\.$/gm;

/** Returns every test of the files `*.test.ts` under test/. */
export function allTests(): Test[] {
  const names = readdirSync(path.join(ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.test.ts')).sort();
  return files.flatMap((name) => testsIn(`test/${name}`));
}

function testsIn(file: string): Test[] {
  const source = readFileSync(path.join(ROOT, file), 'utf8');
  const tests = [...source.matchAll(TEST)].map(([, comments = '', , title = '']) => ({
    file,
    title,
    rows: rowsOf(comments),
  }));
  if (rowsOf(source).length !== tests.flatMap(({ rows }) => rows).length) {
    throw new TypeError(`${file} has a comment "// Proves …" without a test right below it`);
  }
  return tests;
}

function rowsOf(comments: string): string[] {
  return [...comments.matchAll(TAG)].flatMap(([, rows = '']) => rows.split(', '));
}

/** Returns the rows of the tables in docs/guarantees.md, in their order. */
export function guaranteedRows(): string[] {
  const page = readFileSync(path.join(ROOT, 'docs/guarantees.md'), 'utf8');
  return [...page.matchAll(/^\| ([A-Z]\d+) +\|/gm)].map(([, row = '']) => row);
}

/** The figures of `npm run stryker`, and its survivors with the reasons. */
const MUTANTS = `Stryker made 1,902 mutants. The tests killed 1,893 of them; one of these caused an endless loop. The run takes 41 seconds of CPU time.
Stryker does not test a further 48 mutants. They are in code that runs when a file is loaded, for example in constants, so Stryker would
have to run every test for each of them. Nine mutants survived, and change nothing:

| place | surviving mutant | reason |
| --- | --- | --- |
| \`withQuickEnd\` | The condition \`fact.kind !== 'ended'\` is removed. | The condition only narrows a type. Another fact has no end, so the latest quick end stays. |
| \`batchRows\` | Another text replaces \`''\` in \`Date.parse(endedAt ?? '')\`. | The result is shown only if \`endedAt\` is set. |
| \`startedItemsFromChecks\` | The list of lanes begins with a text. | A text has no \`end\`, so the filter removes it. The compiler rejects this mutant. |
| \`describeConflict\` | Another text replaces \`''\` after \`at(-1)\`. | A split text always has a last part. |
| \`applyRead\` | The condition \`pollNowAt !== null\` is removed. | The condition only narrows a type. No read is requested before time 0. |
| \`endIfNotSendable\` | \`job?.status\` becomes \`job.status\`; an empty text replaces \`'active'\`. | The job is known if \`waitingForJob\` is set. |
| \`readOrPoll\`, \`getPollingStart\` | \`getObservations(state)?.\` loses its question mark (two mutants). | The reads are known unless \`waitingForJob\` is set. |`;

/** Returns the whole page docs/proofs.md. */
export function proofsPage(): string {
  const tests = allTests();
  const entries = guaranteedRows().map((row) => {
    const files = tests.filter(({ rows }) => rows.includes(row)).map(({ file }) => file);
    const links = [...new Set(files)].map((file) => `[${path.basename(file, '.test.ts')}](../${file})`);
    return `- **${row}**: ${links.join(', ')}`;
  });
  return `# Proofs

This page is for engineers who want to check a guarantee themselves. With this page, you can find and run the tests of each row of
[guarantees.md](guarantees.md). \`npm run docs\` writes the page.

Each row of guarantees.md has an ID, which is a letter and a number. Row W1, for example, states the effect of a worker that is killed
before its send permission was recorded. A comment right above a test names the rows that the test proves. The first command finds the tests of W1, and the
second one runs one of them:

\`\`\`
git grep -nA 1 'Proves.*W1\\b' -- test
npx jest --config jest.long.config.mjs test/client/lost-sender.fault.test.ts
\`\`\`

\`npm run test:long\` runs the files named \`.fault\`, \`.long\` and \`.e2e\`; \`npm test\` runs the other files. The file _simulation_ runs in
[virtual time](architecture.md#the-simulation).

## Mutants of the pure rules

\`npm run stryker\` runs [Stryker](https://stryker-mutator.io), which changes the pure rules in one place at a time, and runs the tests of
the changed place. A change is a _mutant_, and the tests kill it if one of them fails. \`stryker.config.mjs\` names the changed files:
\`src/follow-up\`, and the rules of batches and outcomes. Tests with random sequences do not run, because they could kill a mutant by chance.

${MUTANTS}

## Tests of each row

${entries.join('\n')}
`;
}
