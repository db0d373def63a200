// Command version is the program without components, so that it is linked in a second.
package main

import "github.com/tracing-backend/tracing/pipeline/app"

func main() { app.Main(nil) }
