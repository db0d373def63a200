/** The page `unknown`. */
export default function UnknownPage() {
  return <h1>unknown</h1>;
}
