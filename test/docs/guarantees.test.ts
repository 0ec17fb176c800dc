import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = path.resolve(__dirname, '../..');
/** A title may go on in the next line. */
const page = readFileSync(path.join(ROOT, 'docs/guarantees.md'), 'utf8').replaceAll(/\s+/g, ' ');

/** The page names a test as `[label](../path): “title”`. */
const named = [...page.matchAll(/\]\(\.\.\/(test\/[^)]+)\): “([^”]+)”/g)].map(
  ([, file = '', title = '']) => ({
    file,
    title,
  }),
);

/** The titles of the tests in a file, as they are written there. */
function titlesIn(file: string): string[] {
  const source = readFileSync(path.join(ROOT, file), 'utf8');
  const titles = /\bit(?:\.\w+)*(?:\([^'"`]*?\))?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g;
  // A table of `each` may hold quoted texts; its title is then the first text after the table.
  const tables = /\bit(?:\.\w+)*\.each\([\s\S]*?\](?: as const)?\)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g;
  return [...source.matchAll(titles), ...source.matchAll(tables)].map(([, , title = '']) => title);
}

describe('docs/guarantees.md', () => {
  it('names tests', () => {
    expect(named.length).toBeGreaterThan(50);
    // A proof in another form would go unchecked.
    expect(page.match(/“/g)).toHaveLength(named.length);
  });

  it.each(named)('names a test that exists: $file: $title', ({ file, title }) => {
    expect(existsSync(path.join(ROOT, file))).toBe(true);
    expect(titlesIn(file)).toContain(title);
  });

  it.each(
    readdirSync(path.join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.fault.test.ts'),
    ),
  )('names every test of test/%s', (name) => {
    const file = `test/${name}`;
    const here = named.filter((each) => each.file === file).map(({ title }) => title);
    expect(titlesIn(file).filter((title) => !here.includes(title))).toEqual([]);
  });
});
