import eslint from '@eslint/js';
import importX, { createNodeResolver } from 'eslint-plugin-import-x';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';

/** A folder may import from the folders listed beside it, and from nothing else in src. */
const mayImport = {
  core: [],
  workflows: ['core'],
  'agent-api': ['core'],
  temporal: ['core'],
  activities: ['core', 'agent-api', 'temporal'],
  client: ['core', 'temporal'],
  cli: ['core', 'temporal', 'client'],
  worker: ['core', 'agent-api', 'activities', 'temporal'],
};

const zones = Object.entries(mayImport).map(([folder, allowed]) => ({
  target: `./src/${folder}`,
  from: './src',
  except: [folder, ...allowed].map((name) => `./${name}`),
  message: `src/${folder} may import only from: ${allowed.join(', ') || 'nothing'} (docs/architecture.md).`,
}));

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
    files: ['src/core/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^(?!\\.|@noble/hashes/)', message: 'src/core imports no package but a hash.' },
          ],
        },
      ],
    },
  },
  {
    // What may run in the workflow sandbox: deterministic code only, and nothing that swells the bundle (docs/architecture.md).
    files: ['src/workflows/**/*.ts', 'src/core/**/*.ts'],
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
              regex: '/activities(/|$)',
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
              regex: '/src/core/',
              allowTypeImports: true,
              message: 'The sandbox shares no code with what it tests: types only.',
            },
            {
              regex: '/src/(?!core/)',
              message: 'The sandbox takes types from src/core, and nothing else.',
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
      'jest/no-disabled-tests': 'error',
      'jest/no-focused-tests': 'error',
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*'] }],
    },
  },
);
