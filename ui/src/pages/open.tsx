/** The page `open`. */
export default function OpenPage() {
  return <h1>open</h1>;
}
