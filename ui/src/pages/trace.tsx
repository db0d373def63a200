/** The page `trace`. */
export default function TracePage() {
  return <h1>trace</h1>;
}
