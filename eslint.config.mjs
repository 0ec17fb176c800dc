import eslint from '@eslint/js';
import importX, { createNodeResolver } from 'eslint-plugin-import-x';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';

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

/** Imports go from tools and tests to tools/lib, the sandbox and src, and never back or from tools to tests or from tests to tools. */
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

/** What one follow-up is made of knows nothing of a batch: whoever reads it need not. */
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
  message: 'What one follow-up is made of imports nothing of a batch (docs/architecture.md).',
});

const IN_READS = 'What a test must see is counted in reads, never in milliseconds';

/** What makes a test depend on how fast a machine is (CONTRIBUTING.md). */
const REAL_TIME = [
  {
    selector: "ImportDeclaration[source.value=/timers/] > ImportSpecifier[imported.name='setTimeout']",
    message:
      'A test waits for an event: `eventually`, the journal, or a fence that comes after what is forbidden.',
  },
  {
    // What a stand-in for it hands on is returned.
    selector: "CallExpression[callee.name='setTimeout']:not(ReturnStatement > *)",
    message:
      'A test waits for an event: `eventually`, the journal, or a fence that comes after what is forbidden.',
  },
  {
    selector:
      'CallExpression[callee.property.name=/^toBe(Less|Greater)Than/]' +
      ":has(CallExpression[callee.object.name=/^(Date|performance)$/][callee.property.name='now'])",
    message:
      'No elapsed time is asserted: inject the clock, or assert which calls were made and in which order.',
  },
  {
    selector:
      "CallExpression:matches([callee.name='eventually'], [callee.property.name=/^(reached|waitFor)$/])" +
      " Property[key.name='timeoutMs']",
    message: 'A wait has no bound of its own beside the one of jest: it ends at its event.',
  },
];

/** The same for tests whose sandbox runs on the real clock. */
const TIMED_SANDBOX = [
  {
    // 0 is over at once, null only by hand.
    selector: "Property[key.name='durationMs']:not([value.raw='0']):not([value.raw='null'])",
    message: `${IN_READS}: \`turn: { reads: 2 }\`.`,
  },
  {
    selector:
      "ObjectExpression:has(> Property[key.name='name'][value.value=/^(stale|lag|late-link)$/])" +
      " > Property[key.name='parameters'] > ObjectExpression > Property[key.name=/^(for|upTo)$/]",
    message: `${IN_READS}: \`parameters: { reads: 2 }\`.`,
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
    ignores: ['src/temporal/sdk-internals.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^@temporalio/[^/]+/(?!package\\.json$)',
              message: 'Paths inside the SDK are not public: src/temporal/sdk-internals.ts has them.',
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
              message: 'Only the variables of the worker use zod; use src/contract/checks.ts.',
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
            { regex: '^(?!\\.|@noble/hashes/)', message: 'src/contract imports no package but a hash.' },
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
              message: 'The pure code in src/follow-up and src/batch imports no package.',
            },
          ],
        },
      ],
    },
  },
  {
    // What may run in the workflow sandbox: deterministic code only, and nothing that swells the bundle (docs/architecture.md).
    files: ['src/{workflows,follow-up,batch,contract}/**/*.ts', 'src/entries/workflow.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!\\.|@noble/hashes/|@temporalio/(workflow|common)$)',
              message: 'Workflow files import @temporalio/workflow, @temporalio/common and pure files only.',
            },
            {
              // Not of contract/activities.ts, which has their shapes.
              regex: '(?<!/contract)/activities(/|$)',
              allowTypeImports: true,
              message: 'Activities are imported as types only.',
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
            'A plain Error fails the workflow task for ever: throw an ApplicationFailure, or let a bug be a bug.',
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
              message: 'The sandbox shares no code with what it tests: types only.',
            },
            {
              regex: '/src/(?!contract/)',
              message: 'The sandbox takes types from src/contract, and nothing else.',
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
    // They give the sandbox a clock of their own.
    files: ['test/sandbox/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...REAL_TIME] },
  },
  {
    // The simulation's time is virtual. Random moments are what a soak is about; none of them is asserted.
    files: ['test/simulation/**/*.ts', 'test/harness/soak/**/*.ts', 'test/**/soak.fault.test.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
);
