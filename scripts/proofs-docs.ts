/**
 * Writes docs/proofs.md: which tests prove each row of docs/guarantees.md. A test names its rows in a comment right above
 * it: `// Proves W1, A3.` Run it with `npm run docs`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(__dirname, '..');
export const PROOFS_FILE = path.join(ROOT, 'docs/proofs.md');

export interface Test {
  /** From the root of the repository. */
  readonly file: string;
  /** As it is written there. */
  readonly title: string;
  /** The rows that it proves. */
  readonly rows: readonly string[];
}

/** The comments right above a test, its call with a table of `each` or without, and its title. */
const TEST =
  /((?:^ *\/\/.*\n)*)^ *it(?:\.(?!each)\w+)*(?:\.each(?:<[\s\S]*?>)?\((?:[^'"`]*?|[\s\S]*?\](?: as const)?)\))?\(\s*(['"`])((?:\\.|(?!\2).)*)\2/gm;
const TAG = /^ *\/\/ Proves (.*)\.$/gm;

/** Every test below test/ in a file `*.test.ts`. */
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
    throw new TypeError(`${file} has a comment "// Proves …" that stands right above no test`);
  }
  return tests;
}

function rowsOf(comments: string): string[] {
  return [...comments.matchAll(TAG)].flatMap(([, rows = '']) => rows.split(', '));
}

/** The rows of the table in docs/guarantees.md, in its order. */
export function guaranteedRows(): string[] {
  const page = readFileSync(path.join(ROOT, 'docs/guarantees.md'), 'utf8');
  return [...page.matchAll(/^\| ([A-Z]\d+) +\|/gm)].map(([, row = '']) => row);
}

/** The whole page. A title stands at the first row that its test proves. */
export function proofsPage(): string {
  const tests = allTests();
  const told = new Set<Test>();
  const entries = guaranteedRows().map((row) => {
    const proofs = tests.filter(({ rows }) => rows.includes(row));
    const named = [...new Set(proofs.map(({ file }) => file))].map((file) => {
      const here = proofs.filter((test) => test.file === file && !told.has(test));
      for (const test of here) told.add(test);
      const titles = here.map(({ title }) => `“${title}”`).join(', ');
      return `[${path.basename(file, '.test.ts')}](../${file})${titles === '' ? '' : `: ${titles}`}`;
    });
    return `- **${row}**: ${named.join('; ')}`;
  });
  return `# Proofs

The tests of each row of [guarantees.md](guarantees.md#what-fails-and-what-happens), made by \`npm run docs\` from the
comments \`// Proves …\` above the tests. A title stands at the first row that its test proves. \`npm run test:long\` runs
the files named \`.fault\`, \`.long\` and \`.doors\`, \`npm test\` the others.

<!-- begin of what npm run docs makes -->

${entries.join('\n')}

<!-- end of what npm run docs makes -->
`;
}

if (require.main === module) writeFileSync(PROOFS_FILE, proofsPage());
