module github.com/mcphybrid/mcphybrid/tiktoken

go 1.25.5

require (
	github.com/stretchr/testify v1.12.1
	github.com/tiktoken-go/tokenizer v0.7.0
)

require (
	github.com/dlclark/regexp2 v1.11.5 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)
