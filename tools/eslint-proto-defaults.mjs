import ts from 'typescript';

/**
 * An ESLint rule that reports a replacement for a missing scalar of a protobuf response. A string, number, boolean or enum that the
 * Temporal server did not set is empty, 0 or false in the response, although its type includes null and undefined. A replacement
 * with `??` or with a default value therefore never takes effect.
 */
export const noProtoDefaults = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      neverMissing:
        'A field of a protobuf response that is not set is empty or 0, so this replacement never takes effect. Use `readProtoField`.',
    },
  },
  create(context) {
    const { program, esTreeNodeToTSNodeMap, getSymbolAtLocation } = context.sourceCode.parserServices;
    const checker = program.getTypeChecker();

    /** Returns the symbol of the property from which a pattern, such as `const { attempt } = activity`, takes a variable. */
    const propertyOfBinding = (binding) => {
      const name = (binding.propertyName ?? binding.name).getText();
      return checker.getTypeAtLocation(binding.parent).getProperty(name);
    };
    const symbolOf = (node) => {
      if (node.type === 'ChainExpression') return symbolOf(node.expression);
      if (node.type === 'MemberExpression') return getSymbolAtLocation(node.property);
      const symbol = node.type === 'Identifier' ? getSymbolAtLocation(node) : undefined;
      const binding = symbol?.declarations?.find(ts.isBindingElement);
      return binding !== undefined && ts.isObjectBindingPattern(binding.parent)
        ? propertyOfBinding(binding)
        : symbol;
    };
    const check = (node, symbol, replacement) => {
      const isSameAsDefault = replacement.type === 'Literal' && ['', 0, false].includes(replacement.value);
      if (!isSameAsDefault && isProtoScalar(checker, symbol))
        context.report({ node, messageId: 'neverMissing' });
    };
    return {
      'LogicalExpression[operator="??"]'(node) {
        check(node, symbolOf(node.left), node.right);
      },
      'ObjectPattern > Property > AssignmentPattern'(node) {
        const binding = esTreeNodeToTSNodeMap.get(node.parent);
        if (ts.isBindingElement(binding)) check(node, propertyOfBinding(binding), node.right);
      },
    };
  },
};

const SCALARS =
  ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike | ts.TypeFlags.EnumLike;

function isProtoScalar(checker, symbol) {
  const isProto = symbol?.declarations?.some((each) =>
    each.getSourceFile().fileName.includes('/@temporalio/proto/'),
  );
  if (!isProto) return false;
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(symbol));
  const parts = type.isUnion() ? type.types : [type];
  return parts.every((part) => (part.flags & SCALARS) !== 0 || part.symbol?.name === 'Long');
}
