import eslint from '@eslint/js';
import importX, { createNodeResolver } from 'eslint-plugin-import-x';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';
import { noProtoDefaults } from './tools/eslint-proto-defaults.mjs';

/** The folders in src, and the other folders of src that the files in each folder may import. */
const mayImport = {
  contract: [],
  'follow-up': ['contract'],
  batch: ['contract'],
  workflows: ['contract', 'follow-up', 'batch'],
  'agent-api': ['contract', 'follow-up'],
  temporal: ['contract', 'batch'],
  activities: ['contract', 'follow-up', 'batch', 'agent-api', 'temporal'],
  client: ['contract', 'follow-up', 'batch', 'temporal'],
  worker: ['contract', 'agent-api', 'activities', 'temporal'],
  // Each file has the exports of a package's entry, and no code.
  entries: ['contract', 'batch', 'temporal', 'client', 'workflows', 'activities', 'agent-api', 'worker'],
  cli: ['contract', 'batch', 'temporal', 'client', 'entries'],
};

const zones = Object.entries(mayImport).map(([folder, allowed]) => ({
  target: `./src/${folder}`,
  from: './src',
  except: [folder, ...allowed].map((name) => `./${name}`),
  message: `src/${folder} may import only from: ${allowed.join(', ') || 'nothing'} (docs/architecture.md).`,
}));

/** Tools and tests may import tools/lib, the sandbox and src. Imports in the other direction, or between tools and tests, are errors. */
const DIRECTION = 'See the import directions in docs/architecture.md.';
zones.push(
  {
    target: ['./src', './sandbox', './tools'],
    from: './test',
    message: `Only tests import tests. ${DIRECTION}`,
  },
  {
    target: ['./src', './sandbox'],
    from: './tools',
    message: `Only tools and tests import tools/lib. ${DIRECTION}`,
  },
  { target: './src', from: './sandbox', message: `src does not import the sandbox. ${DIRECTION}` },
  {
    target: ['./test', './tools/lib'],
    from: './tools',
    except: ['./lib'],
    message: `Code that tools and tests share is in tools/lib. ${DIRECTION}`,
  },
);

/** The code of a single follow-up does not import batch code, so that a developer can read this code without knowing batches. */
zones.push({
  target: [
    ...[
      './src/contract/*.ts',
      './src/temporal/!(batch-items).ts',
      './src/agent-api',
      './src/workflows/follow-up',
    ],
    ...['./src/workflows/!(index).ts', './src/activities/!(index).ts'],
    './src/client/!(follow-up-client|interfaces|schedules).ts',
  ],
  from: [
    ...['./src/batch', './src/temporal/batch-items.ts', './src/workflows/batch', './src/client/batch'],
    './src/activities/batch',
  ],
  message: 'The code of a single follow-up must not import batch code (docs/architecture.md).',
});

const USE_READS =
  'Set a number of reads instead of milliseconds, so that the test does not depend on the speed of the machine';

const WAIT_FOR_EVENT =
  'Do not wait for a duration. Wait for an event: use `eventually`, the journal, or an event after which the forbidden event can no longer happen.';

/** Code that makes a test depend on the speed of the machine (CONTRIBUTING.md). */
const REAL_TIME = [
  {
    selector: "ImportDeclaration[source.value=/timers/] > ImportSpecifier[imported.name='setTimeout']",
    message: WAIT_FOR_EVENT,
  },
  {
    // A replacement for `setTimeout` may return the call of the original function.
    selector: "CallExpression[callee.name='setTimeout']:not(ReturnStatement > *)",
    message: WAIT_FOR_EVENT,
  },
  {
    selector:
      'CallExpression[callee.property.name=/^toBe(Less|Greater)Than/]' +
      ":has(CallExpression[callee.object.name=/^(Date|performance)$/][callee.property.name='now'])",
    message:
      'Do not assert elapsed time. Inject the clock, or assert which calls were made and in which order.',
  },
  {
    selector:
      "CallExpression:matches([callee.name='eventually'], [callee.property.name='waitFor'])" +
      " Property[key.name='timeoutMs']",
    message:
      'Do not set a timeout for a single wait. The wait ends with its event, and Jest limits the duration of the test.',
  },
];

/** Further rules for tests whose sandbox runs on the real clock. */
const TIMED_SANDBOX = [
  {
    // A turn of 0 ms ends immediately, and a turn with null ends only when the test ends it.
    selector: "Property[key.name='durationMs']:not([value.raw='0']):not([value.raw='null'])",
    message: `${USE_READS}: \`turn: { reads: 2 }\`.`,
  },
  {
    selector:
      "ObjectExpression:has(> Property[key.name='name'][value.value=/^(stale|lag|late-link)$/])" +
      " > Property[key.name='parameters'] > ObjectExpression > Property[key.name=/^(for|upTo)$/]",
    message: `${USE_READS}: \`parameters: { reads: 2 }\`.`,
  },
];

export default tseslint.config(
  { ignores: ['dist', 'artifacts', 'examples', 'reports', '.cache', 'node_modules'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [createNodeResolver({ extensions: ['.ts', '.js'] })],
    },
    rules: {
      'object-shorthand': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'interface'],
      'import-x/no-cycle': 'error',
      'import-x/no-restricted-paths': ['error', { zones, basePath: import.meta.dirname }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { project: { rules: { 'no-proto-defaults': noProtoDefaults } } },
    rules: { 'project/no-proto-defaults': 'error' },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/temporal/sdk-internals.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^@temporalio/[^/]+/(?!package\\.json$)',
              message:
                'Paths inside an SDK package are not public. Import them only in src/temporal/sdk-internals.ts.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/worker/variables.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^zod(/|$)',
              message: 'Only src/worker/variables.ts may import zod. Use src/contract/checks.ts instead.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['src/contract/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!\\.|@noble/hashes/)',
              message: 'src/contract may import no package except @noble/hashes.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['src/follow-up/**/*.ts', 'src/batch/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!\\.)',
              message: 'The pure code in src/follow-up and src/batch must not import packages.',
            },
          ],
        },
      ],
    },
  },
  {
    // The workflow sandbox runs these files. The code must be deterministic and keep the bundle small (docs/architecture.md).
    files: ['src/{workflows,follow-up,batch,contract}/**/*.ts', 'src/entries/workflow.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!\\.|@noble/hashes/|@temporalio/(workflow|common)$)',
              message:
                'Workflow files may import only @temporalio/workflow, @temporalio/common and pure files.',
            },
            {
              // contract/activities.ts is allowed, because this file has the types of the activities.
              regex: '(?<!/contract)/activities(/|$)',
              allowTypeImports: true,
              message: 'Import activities only as types.',
            },
          ],
        },
      ],
      'no-restricted-globals': ['error', 'process', 'Buffer', 'require'],
      'no-restricted-syntax': [
        'error',
        {
          selector: "ThrowStatement > NewExpression[callee.name='Error']",
          message:
            'After a plain Error, Temporal retries the workflow task indefinitely. Throw an ApplicationFailure instead.',
        },
      ],
    },
  },
  {
    files: ['sandbox/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '/src/contract/',
              allowTypeImports: true,
              message:
                'The sandbox must not share code with the worker that it tests. Import only types from src/contract.',
            },
            {
              regex: '/src/(?!contract/)',
              message: 'The sandbox may import only types from src/contract.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    extends: [jest.configs['flat/recommended'], jest.configs['flat/style']],
    rules: {
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'jest/no-disabled-tests': 'error',
      'jest/no-focused-tests': 'error',
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*'] }],
      'no-restricted-syntax': ['error', ...REAL_TIME, ...TIMED_SANDBOX],
    },
  },
  {
    // The sandbox's own tests inject a clock, so that milliseconds do not depend on the machine.
    files: ['test/sandbox/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...REAL_TIME] },
  },
  {
    // The simulation runs in virtual time. A soak test injects faults at random times, and asserts none of these times.
    files: ['test/simulation/**/*.ts', 'test/harness/soak/**/*.ts', 'test/**/soak.fault.test.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
);
