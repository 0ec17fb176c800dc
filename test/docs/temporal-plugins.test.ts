import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT } from '../harness/worker-process';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

it.each(['examples/encryption/plugin.js', 'examples/tracing/plugin.js'])(
  'the page shows %s, which the tests run',
  (file) => {
    expect(read('docs/temporal-plugins.md')).toContain(`\n\`\`\`js\n${read(file)}\`\`\`\n`);
  },
);

it('the packages of the tracing example have the versions that the tests use', () => {
  const versions = (file: string) => JSON.parse(read(file)) as Record<string, Record<string, string>>;
  const { devDependencies } = versions('package.json');
  expect(devDependencies).toMatchObject(versions('examples/tracing/package.json').dependencies ?? {});
});
