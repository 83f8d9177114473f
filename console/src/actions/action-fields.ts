import { type DescField, type DescMethodUnary, ScalarType } from "@bufbuild/protobuf";

/** A field of a request that its caller may fill in: a text, or a yes or no. */
export interface AskedField {
  readonly name: string;
  readonly label: string;
  readonly isFlag: boolean;
  /** One of these, or none. */
  readonly choices?: readonly { readonly value: string; readonly label: string }[];
}

/** Makes a call safe to repeat: the dialog fills it in. */
export const REQUEST_ID = "requestId";

/** What is left to ask for, as the contract has it. */
export function fieldsToAsk(method: DescMethodUnary, given: object): readonly AskedField[] {
  return method.input.fields
    .filter((field) => !(field.localName in given) && field.localName !== REQUEST_ID)
    .flatMap((field) => {
      const isFlag = isScalar(field, ScalarType.BOOL);
      const isText = isScalar(field, ScalarType.STRING);
      return isFlag || isText ? [{ name: field.localName, label: labelOf(field), isFlag }] : [];
    });
}

export const takesRequestId = (method: DescMethodUnary): boolean =>
  method.input.fields.some(({ localName }) => localName === REQUEST_ID);

const isScalar = (field: DescField, type: ScalarType): boolean => field.fieldKind === "scalar" && field.scalar === type;

const labelOf = ({ name }: DescField): string => {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};
